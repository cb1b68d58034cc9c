package spiderpool

import (
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/plugin"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed sriov.conflist
var sriovConflist string

// SRIOV has a virtual function of a real device in each pod. Packets
// between pods pass that device's own switch, and not the lab's links.
func SRIOV() network.Network {
	n := network.Network{
		Kind:         result.KindOwnPlugin,
		Name:         "spiderpool/sriov",
		NoEncryption: network.OnTheWire,
		NoXDP:        noXDP,
		Summary:      "Spiderpool over SR-IOV: a virtual function of the machine's device in each pod, veth0 to their own node",
		Model:        model + "sriov-cni v2 (virtual functions by this program's plugin cnibench-sriov)",
		LeavesOut: leavesOut + "; the lab's wire: pods are on the switch of the real device, whatever the link; " +
			"VLANs, rates and trust of virtual functions",
		Needs:   []netns.Feature{netns.Veth(), virtualFunctions("/sys")},
		Plugins: []string{"host-local"},
		SetUp:   node,
	}
	n.Conflist = network.Template(sriovConflist, n)
	return n
}

// virtualFunctions is whether the machine has devices for pods: there are
// never enough for certain, as other labs may take them.
func virtualFunctions(sys string) netns.Feature {
	return netns.Feature{
		Name: "sriov", Doc: "the network spiderpool/sriov", Cure: "echo 4 > /sys/class/net/DEVICE/device/sriov_numvfs, on a device that has SR-IOV",
		Probe: func() error {
			all, err := listVFs(sys)
			if err == nil && len(all) == 0 {
				err = errors.New("this machine has no sriov virtual functions: " +
					"make some with echo 4 > /sys/class/net/DEVICE/device/sriov_numvfs, on a device that has SR-IOV")
			}
			return err
		},
	}
}

// listVFs names the network devices of the machine that are virtual functions
// and free: those of pods are not in its namespace.
func listVFs(sys string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(sys, "class/net/*/device/physfn"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range found {
		names = append(names, filepath.Base(filepath.Dir(filepath.Dir(f))))
	}
	slices.Sort(names)
	return names, nil
}

// vfAlias, before a virtual function's own name, marks one that is in a pod.
const vfAlias = "cnibench:"

// takeVF moves the first virtual function of from that is free into a pod, as
// its device of that name.
func takeVF(sys string, from, pod netns.NS, name string, mtu int) error {
	all, err := listVFs(sys)
	if err != nil {
		return err
	}
	into, err := os.Open(pod.Path)
	if err != nil {
		return err
	}
	defer into.Close()
	h, err := netns.Handle(from)
	if err != nil {
		return err
	}
	defer h.Close()
	for _, vf := range all {
		dev, err := netns.Link(h, vf)
		if err != nil || dev.Attrs().Flags&net.FlagUp != 0 {
			continue // another pod took it meanwhile, or the machine uses it
		}
		if err := h.LinkSetNsFd(dev, int(into.Fd())); err != nil {
			continue // the same
		}
		return nameVF(pod, vf, name, mtu)
	}
	return fmt.Errorf("none of %d virtual functions is free (one that is up is left to the machine): "+
		"make more with echo N > /sys/class/net/DEVICE/device/sriov_numvfs", len(all))
}

func nameVF(pod netns.NS, vf, name string, mtu int) error {
	h, err := netns.Handle(pod)
	if err != nil {
		return err
	}
	defer h.Close()
	dev, err := netns.Link(h, vf)
	if err != nil {
		return err
	}
	if err := h.LinkSetAlias(dev, vfAlias+vf); err != nil {
		return fmt.Errorf("%s: %w", vf, err)
	}
	if err := h.LinkSetName(dev, name); err != nil {
		return fmt.Errorf("%s: %w", vf, err)
	}
	if err := h.LinkSetMTU(dev, mtu); err != nil {
		return fmt.Errorf("%s: MTU %d: %w", vf, mtu, err)
	}
	return h.LinkSetUp(dev)
}

// returnVF gives a pod's virtual function back under its own name. A pod that
// has none is no error.
func returnVF(pod, to netns.NS, name string) error {
	h, err := netns.Handle(pod)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.Close()
	dev, err := netns.Link(h, name)
	var gone netlink.LinkNotFoundError
	if errors.As(err, &gone) {
		return nil
	}
	if err != nil {
		return err
	}
	vf, marked := strings.CutPrefix(dev.Attrs().Alias, vfAlias)
	if !marked {
		return nil
	}
	back, err := os.Open(to.Path)
	if err != nil {
		return err
	}
	defer back.Close()
	return errors.Join(h.LinkSetDown(dev), h.LinkSetName(dev, vf), h.LinkSetAlias(dev, ""), h.LinkSetNsFd(dev, int(back.Fd())))
}

// machineNS is where virtual functions are that no pod has.
func machineNS() netns.NS { return netns.NS{Name: "the machine", Path: "/proc/1/ns/net"} }

// sriovAdd does what sriov-cni does for a pod, without VLAN, rate or trust.
func sriovAdd(args *skel.CmdArgs) (err error) {
	conf, result, err := plugin.IPAMAdd(args)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, plugin.IPAMDel(conf, args))
		}
	}()
	if err := takeVF("/sys", machineNS(), plugin.NS(args), args.IfName, conf.MTU); err != nil {
		return err
	}
	ip := result.IPs[0]
	var mac net.HardwareAddr
	err = netns.Do(plugin.NS(args), func() error {
		dev, err := netlink.LinkByName(args.IfName)
		if err != nil {
			return fmt.Errorf("device %s: %w", args.IfName, err)
		}
		mac = dev.Attrs().HardwareAddr
		return netlink.AddrAdd(dev, &netlink.Addr{IPNet: &ip.Address})
	})
	if err != nil {
		return errors.Join(err, returnVF(plugin.NS(args), machineNS(), args.IfName))
	}
	ip.Interface, ip.Gateway = current.Int(0), nil
	result.Interfaces = []*current.Interface{{Name: args.IfName, Mac: mac.String(), Sandbox: args.Netns}}
	result.Routes = nil
	return types.PrintResult(result, conf.CNIVersion)
}

// sriovDel gives the address and the virtual function back. It is no error for
// a pod that does not exist, or was added in part.
func sriovDel(args *skel.CmdArgs) error {
	var err error
	if args.Netns != "" {
		err = returnVF(plugin.NS(args), machineNS(), args.IfName)
	}
	return errors.Join(err, plugin.Del(args))
}
