package baremetal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/answer"
	"github.com/cnibench/cnibench/internal/exec"
)

// defaultDir is where the roles keep things on a host.
const defaultDir = "/var/lib/cnibench"

// inventoryWithin bounds the reading of an inventory, which may be a program.
const inventoryWithin = time.Minute

// defaultKubeconfig is where kubeadm writes the administrator's.
const defaultKubeconfig = "/etc/kubernetes/admin.conf"

// Inventory is what an Ansible inventory names.
type Inventory struct {
	Path           string
	Client, Server Host
	// ControlPlane has the kubeconfig of the Kubernetes that client and server are
	// nodes of; nil: of none.
	ControlPlane *Host
	// Sink is where results are copied to; nil: nowhere.
	Sink *Host
}

// Host is a machine of the inventory, with the variables that are read here.
type Host struct {
	Name    string
	Address string // ansible_host
	User    string // ansible_user; "" is the ssh client's choice
	Port    string // ansible_port
	KeyFile string // ansible_ssh_private_key_file
	SSHArgs string // ansible_ssh_common_args
	Become  bool   // ansible_become: by sudo without a password
	// Data is where traffic is sent: cnibench_address, or Address.
	Data string
	// Device is cnibench_device; "" is that of the route to the other end.
	Device string
	// Dir is cnibench_dir, the folder of the roles on the host.
	Dir string
	// SinkDir is cnibench_sink_dir, where results go.
	SinkDir string
	// Kubeconfig is cnibench_kubeconfig, a control plane's file with the rights
	// that a run needs.
	Kubeconfig string
}

// read asks ansible-inventory for what is in a file, so that every form of an
// inventory is taken.
func read(ctx context.Context, r *exec.Runner, path string, env []string) (Inventory, error) {
	inv := Inventory{}
	abs, err := filepath.Abs(path)
	if err != nil {
		return inv, err
	}
	inv.Path = abs
	ctx, cancel := context.WithTimeoutCause(ctx, inventoryWithin, fmt.Errorf("ansible-inventory did not end within %v", inventoryWithin))
	defer cancel()
	res, err := r.Run(ctx, exec.Cmd{Argv: []string{"ansible-inventory", "-i", abs, "--list"}, Env: env})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return inv, fmt.Errorf("read the inventory: %w", err)
	}
	return inv, inv.parse(res.Stdout)
}

// parse reads the output of ansible-inventory --list.
func (inv *Inventory) parse(list []byte) error {
	var groups map[string]json.RawMessage
	if err := json.Unmarshal(list, &groups); err != nil {
		return fmt.Errorf("inventory %s: ansible-inventory's output: %w", inv.Path, err)
	}
	var meta struct {
		HostVars map[string]map[string]any `json:"hostvars"`
	}
	if raw, there := groups["_meta"]; there {
		if err := json.Unmarshal(raw, &meta); err != nil {
			return fmt.Errorf("inventory %s: _meta: %w", inv.Path, err)
		}
	}
	var errs []error
	one := func(group string, needed bool) *Host {
		var g struct {
			Hosts []string `json:"hosts"`
		}
		if raw, there := groups[group]; there {
			if err := json.Unmarshal(raw, &g); err != nil {
				errs = append(errs, fmt.Errorf("group %s: %w", group, err))
				return nil
			}
		}
		if len(g.Hosts) == 0 && !needed {
			return nil
		}
		if len(g.Hosts) != 1 {
			errs = append(errs, fmt.Errorf("group %s has %d hosts, want one", group, len(g.Hosts)))
			return nil
		}
		h, err := newHost(g.Hosts[0], meta.HostVars[g.Hosts[0]])
		errs = append(errs, err)
		return &h
	}
	client, server := one("client", true), one("server", true)
	inv.ControlPlane, inv.Sink = one("control_plane", false), one("sink", false)
	if inv.Sink != nil && inv.Sink.SinkDir == "" {
		errs = append(errs, fmt.Errorf("%s is the sink and has no cnibench_sink_dir", inv.Sink.Name))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("inventory %s: %w", inv.Path, err)
	}
	inv.Client, inv.Server = *client, *server
	if client.Name == server.Name {
		return fmt.Errorf("inventory %s: client and server are one host, %s: name two", inv.Path, client.Name)
	}
	return nil
}

func newHost(name string, vars map[string]any) (Host, error) {
	var errs []error
	text := func(key, otherwise string) string {
		v, there := vars[key]
		if !there || v == nil {
			return otherwise
		}
		s := fmt.Sprint(v)
		if strings.Contains(s, "{{") {
			errs = append(errs, fmt.Errorf("%s: %s is a template: write the value", name, key))
		}
		return s
	}
	h := Host{
		Name: name, Address: text("ansible_host", name), User: text("ansible_user", ""), Port: text("ansible_port", ""),
		KeyFile: text("ansible_ssh_private_key_file", ""), SSHArgs: text("ansible_ssh_common_args", ""),
		Become: text("ansible_become", "false") == "true",
		Device: text("cnibench_device", ""), Dir: text("cnibench_dir", defaultDir), SinkDir: text("cnibench_sink_dir", ""),
		Kubeconfig: text("cnibench_kubeconfig", defaultKubeconfig),
	}
	h.Data = text("cnibench_address", h.Address)
	if h.Device != "" && !answer.Device(h.Device) {
		errs = append(errs, fmt.Errorf("%s: cnibench_device %q: no device has such a name", name, h.Device))
	}
	for _, secret := range []string{"ansible_password", "ansible_ssh_pass"} {
		if _, there := vars[secret]; there {
			errs = append(errs, fmt.Errorf("%s: %s is not taken: use a key, which no command line shows", name, secret))
		}
	}
	if !ownFolder(h.Dir) {
		errs = append(errs, fmt.Errorf("%s: cnibench_dir %q: want a folder of its own, from the root, such as /opt/cnibench: what the roles put there is removed", name, h.Dir))
	}
	return h, errors.Join(errs...)
}

// ownFolder reports whether a folder can be one that is cnibench's alone: none that a
// system has, and none of a system's own trees.
func ownFolder(dir string) bool {
	clean := filepath.Clean(dir)
	if !filepath.IsAbs(dir) || strings.Count(clean, "/") < 2 || strings.ContainsAny(dir, "\n\x00") {
		return false
	}
	for _, tree := range []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr"} {
		if strings.HasPrefix(clean, tree+"/") {
			return false
		}
	}
	switch filepath.Dir(clean) {
	case "/home":
		return false // somebody's home
	case "/var":
		return false // /var/lib, /var/log …
	}
	switch clean {
	case "/run/lock", "/run/netns", "/run/user", "/run/systemd":
		return false
	}
	return true
}

// agent is the program on the host.
func (h Host) agent() string { return h.Dir + "/agent/cnibench" }

// dataAddress is where traffic to the host is sent.
func (h Host) dataAddress(ctx context.Context) (netip.Addr, error) {
	if a, err := netip.ParseAddr(h.Data); err == nil {
		return a, nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", h.Data)
	if err != nil || len(found) == 0 {
		return netip.Addr{}, fmt.Errorf("%s: the address of %s: %w; name it in cnibench_address", h.Name, h.Data, err)
	}
	return found[0].Unmap(), nil
}
