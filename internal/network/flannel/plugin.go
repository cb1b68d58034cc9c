package flannel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/cnibench/cnibench/internal/network/plugin"
)

// Plugins are the CNI plugins of this program that the networks of this folder name.
func Plugins() []plugin.Plugin {
	return []plugin.Plugin{
		{Name: "cnibench-flannel", Funcs: skel.CNIFuncs{Add: add, Del: del, Check: plugin.Check}},
	}
}

// What flannel's own CNI plugin (cni-plugin v1.8, flannel_linux.go) uses where its
// configuration does not say.
const (
	subnetFile = "/run/flannel/subnet.env"
	dataDir    = "/var/lib/cni/flannel"
)

// flannelConf is the configuration of cnibench-flannel, which does what the plugin
// "flannel" does: it is in no Go proxy.
type flannelConf struct {
	types.NetConf
	SubnetFile string         `json:"subnetFile"`
	DataDir    string         `json:"dataDir"`
	Delegate   map[string]any `json:"delegate"`
}

// flannelEnv is what flannel's agent has written down of this node.
type flannelEnv struct {
	networks, subnets []netip.Prefix
	mtu               int
	masquerades       bool // the agent does, so that the bridge plugin must not
}

func readFlannelConf(args *skel.CmdArgs) (flannelConf, error) {
	c := flannelConf{SubnetFile: subnetFile, DataDir: dataDir}
	if err := json.Unmarshal(args.StdinData, &c); err != nil {
		return c, fmt.Errorf("configuration: %w", err)
	}
	return c, nil
}

// kept is the file that holds what a container's ADD was delegated with.
func (c flannelConf) kept(args *skel.CmdArgs) string {
	return filepath.Join(c.DataDir, args.ContainerID)
}

// add gives the pod to the bridge plugin, with the node's subnet.
func add(args *skel.CmdArgs) error {
	c, err := readFlannelConf(args)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.SubnetFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: flannel's agent does not run on this node yet", err)
	}
	if err != nil {
		return err
	}
	env, err := parseFlannelEnv(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", c.SubnetFile, err)
	}
	delegate, err := json.Marshal(c.delegate(env))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(c.kept(args), delegate, 0o600); err != nil {
		return err
	}
	result, err := invoke.DelegateAdd(context.Background(), c.plugin(), delegate, nil)
	if err != nil {
		return err
	}
	return result.Print()
}

// plugin is the one that makes the pod's device.
func (c flannelConf) plugin() string {
	if name, ok := c.Delegate["type"].(string); ok {
		return name
	}
	return "bridge"
}

// delegate is the configuration of that.
func (c flannelConf) delegate(env flannelEnv) map[string]any {
	out := map[string]any{"ipMasq": !env.masquerades, "mtu": env.mtu}
	if c.plugin() == "bridge" {
		out["isGateway"] = true
	}
	for k, v := range c.Delegate {
		out[k] = v
	}
	ranges, routes := [][]map[string]string{}, []map[string]string{}
	for _, s := range env.subnets {
		ranges = append(ranges, []map[string]string{{"subnet": s.Masked().String()}})
	}
	for _, n := range env.networks {
		routes = append(routes, map[string]string{"dst": n.Masked().String()})
	}
	out["name"], out["cniVersion"], out["type"] = c.Name, c.CNIVersion, c.plugin()
	out["ipam"] = map[string]any{"type": "host-local", "ranges": ranges, "routes": routes}
	return out
}

// parseFlannelEnv reads a subnet.env.
func parseFlannelEnv(text string) (flannelEnv, error) {
	var env flannelEnv
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		var err error
		switch key {
		case "FLANNEL_NETWORK", "FLANNEL_IPV6_NETWORK":
			env.networks, err = appendPrefixes(env.networks, value)
		case "FLANNEL_SUBNET", "FLANNEL_IPV6_SUBNET":
			env.subnets, err = appendPrefixes(env.subnets, value)
		case "FLANNEL_MTU":
			env.mtu, err = strconv.Atoi(value)
		case "FLANNEL_IPMASQ":
			env.masquerades, err = strconv.ParseBool(value)
		}
		if err != nil {
			return env, fmt.Errorf("%s: %w", key, err)
		}
	}
	if len(env.subnets) == 0 || len(env.networks) == 0 || env.mtu <= 0 {
		return env, errors.New("FLANNEL_NETWORK, FLANNEL_SUBNET or FLANNEL_MTU is missing")
	}
	return env, nil
}

func appendPrefixes(to []netip.Prefix, list string) ([]netip.Prefix, error) {
	for _, s := range strings.Split(list, ",") {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, err
		}
		to = append(to, p)
	}
	return to, nil
}

// del undoes what add did; a container that it has nothing of is gone.
func del(args *skel.CmdArgs) error {
	c, err := readFlannelConf(args)
	if err != nil {
		return err
	}
	delegate, err := os.ReadFile(c.kept(args))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var conf types.NetConf
	if err := json.Unmarshal(delegate, &conf); err != nil {
		return fmt.Errorf("%s: %w", c.kept(args), err)
	}
	if err := invoke.DelegateDel(context.Background(), conf.Type, delegate, nil); err != nil {
		return err
	}
	return os.Remove(c.kept(args))
}
