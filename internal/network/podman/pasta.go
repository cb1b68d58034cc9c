package podman

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/plugin"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed pasta.conflist
var pastaConflist string

const (
	// pastaMTU is that of the containers' devices unless a user chooses one (passt(1), -m).
	pastaMTU = 65520
	// pastaEnds is how long one may take to end.
	pastaEnds = 2 * time.Second
)

// Pasta is the network of a container whose user is not root (podman-run(1), --network,
// Podman 5): pasta carries its packets in user space, between a tap device in the container and
// sockets of the node. Others reach the container by ports that are published at its node
// (podman run --publish).
func Pasta() network.Network {
	n := network.Network{
		Kind:         result.KindReal,
		Name:         "podman/pasta",
		Summary:      "Podman's default network for users that are not root: pasta, in user space, between a tap device and sockets of the node; pods are reached by published ports",
		NoServices:   "its pods are reached by ports that their nodes publish, and have no addresses that a service could lead to",
		NoEncryption: "pasta was not tried on a device that encrypts",
		FixedMTU:     pastaMTU,
		Published:    published,
		Needs:        []netns.Feature{pastaTool(), netns.TUN()},
		Plugins:      []string{"host-local"},
		Datapath: func(ctx context.Context) (string, error) {
			r := exec.NewRunner()
			defer r.Close()
			got, err := r.Run(ctx, exec.Cmd{Argv: []string{"pasta", "--version"}})
			line, _, _ := strings.Cut(string(got.Stdout), "\n")
			return strings.TrimSpace(line), err
		},
	}
	n.Conflist = network.Template(pastaConflist, n)
	return n
}

// pastaTool is the Debian package, as a feature of the machine.
func pastaTool() netns.Feature {
	return netns.Feature{Name: "pasta", Doc: "networks of containers without root", Cure: "apt-get install passt", Probe: func() error {
		if _, err := exec.LookPath("pasta"); err != nil {
			return errors.New("pasta is not installed: apt-get install passt")
		}
		return nil
	}}
}

// published is the first of the two ports at which a node passes connections and datagrams to
// one of its pods, and at which the pod has its server; netperf has its data on the second.
func published(pod netip.Addr) uint16 { return 20000 + 2*uint16(pod.As4()[3]) }

// pastaConf is the configuration of the plugin cnibench-pasta, which starts pasta as Podman
// does.
type pastaConf struct {
	types.NetConf
	Interface string     `json:"interface"` // the node's device, from which pasta takes what has no flag here
	Gateway   netip.Addr `json:"gateway"`
	RunDir    string     `json:"runDir"` // the node's folder
}

func pastaDir(runDir string) string { return filepath.Join(runDir, "pasta") }

func readPastaConf(args *skel.CmdArgs) (pastaConf, error) {
	var conf pastaConf
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return conf, fmt.Errorf("configuration: %w", err)
	}
	if conf.Interface == "" || conf.RunDir == "" || !conf.Gateway.Is4() {
		return conf, errors.New(`configuration: "interface", "gateway" and "runDir" are required`)
	}
	return conf, nil
}

// pidFile has the number of the pod's pasta.
func (c pastaConf) pidFile(args *skel.CmdArgs) string {
	return filepath.Join(pastaDir(c.RunDir), args.ContainerID+".pid")
}

func pastaAdd(args *skel.CmdArgs) error {
	conf, err := readPastaConf(args)
	if err != nil {
		return err
	}
	return addPod(args, conf.CNIVersion, func(address netip.Prefix) (string, netip.Prefix, error) {
		mac, err := conf.start(args, address)
		return mac, address, err
	})
}

// start starts the pod's pasta, which goes to the background when the device is there, and gives
// the device's hardware address.
func (c pastaConf) start(args *skel.CmdArgs, address netip.Prefix) (mac string, err error) {
	if err := os.MkdirAll(pastaDir(c.RunDir), 0o700); err != nil {
		return "", err
	}
	r := exec.NewRunner()
	defer r.Close()
	got, err := r.Run(context.Background(), exec.Cmd{Argv: c.argv(args, address), CleanEnv: true, Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, bytes.TrimSpace(got.Stderr))
	}
	device, err := plugin.OnDevice(args, func(netlink.Link) error { return nil })
	if err != nil {
		return "", errors.Join(err, endPasta(c.pidFile(args), args.Netns))
	}
	return device.String(), nil
}

// argv are pasta's arguments (passt(1)): those of Podman's containers/common (libnetwork/pasta,
// v0.60.4), which also has pasta publish the ports that a user names and leave alone all others.
// Podman does not name the address and the gateway, so that each container has its node's; here
// they are the pod's. A user other than root has pasta run as that user. Root has it run as
// root, because the namespace is root's.
func (c pastaConf) argv(args *skel.CmdArgs, address netip.Prefix) []string {
	first := published(address.Addr())
	ports := fmt.Sprintf("%d-%d", first, first+1)
	return []string{
		"pasta", "--config-net", "--ipv4-only", "--interface", c.Interface, "--ns-ifname", args.IfName,
		"--address", address.Addr().String(), "--netmask", strconv.Itoa(address.Bits()), "--gateway", c.Gateway.String(),
		"--tcp-ports", ports, "--udp-ports", ports, "--tcp-ns", "none", "--udp-ns", "none", "--no-map-gw",
		"--runas", "0:0", "--quiet", "--log-file", c.pidFile(args) + ".log", "--pid", c.pidFile(args), "--netns", args.Netns,
	}
}

// pastaDel is no error for a pod that is gone, or was added in part.
func pastaDel(args *skel.CmdArgs) error {
	conf, err := readPastaConf(args)
	if err != nil {
		return err
	}
	return errors.Join(plugin.IPAMFree(args), endPasta(conf.pidFile(args), args.Netns))
}

func readPID(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 2 {
		return 0, fmt.Errorf("%s: %q is no number of a process", file, text)
	}
	return pid, nil
}

// endPasta ends the pasta of a pod, by its file and the pod's namespace; one that has ended is
// no error. It does not touch a process that has the number by now and is another.
func endPasta(file, ns string) error {
	pid, err := readPID(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return os.Remove(file)
	}
	if err != nil {
		return fmt.Errorf("pasta, process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil && bytes.HasSuffix(argv, []byte("\x00--netns\x00"+ns+"\x00")) {
		if err := endProcess(fd); err != nil {
			return fmt.Errorf("pasta, process %d: %w", pid, err)
		}
	}
	return os.Remove(file)
}

// endProcess ends a process and waits for that: first it asks, and then it insists.
func endProcess(fd int) error {
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil {
			if errors.Is(err, unix.ESRCH) {
				return nil
			}
			return err
		}
		for deadline := time.Now().Add(pastaEnds); ; {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(0, time.Until(deadline).Milliseconds())))
			if n > 0 {
				return nil
			}
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}
	return errors.New("it does not end")
}
