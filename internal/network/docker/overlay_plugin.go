package docker

import (
	"context"
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/network/plugin"
)

// overlayAdd does to a pod what Join of moby's
// libnetwork/drivers/overlay/joinleave.go does to a container: a veth whose
// other end is on the bridge of the overlay's namespace.
func overlayAdd(args *skel.CmdArgs) (err error) {
	conf, result, err := plugin.IPAMAdd(args)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, plugin.IPAMDel(conf, args))
		}
	}()
	address, ok := netip.AddrFromSlice(result.IPs[0].Address.IP.To4())
	if !ok {
		return fmt.Errorf("address %s", result.IPs[0].Address.IP)
	}
	if err := veth(conf, args, address); err != nil {
		return err
	}
	_, err = plugin.OnDevice(args, func(dev netlink.Link) error {
		if err := netlink.AddrAdd(dev, &netlink.Addr{IPNet: &result.IPs[0].Address}); err != nil {
			return fmt.Errorf("address %s: %w", address, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The rules are loaded where args.Netns is; no other field of a node is used.
	pod := network.Node{Name: "container " + args.ContainerID, NS: netns.NS{Name: filepath.Base(args.Netns), Path: args.Netns}}
	if err := dataplane.Restore(context.Background(), pod, resolver()); err != nil {
		return err
	}
	result.IPs[0].Interface, result.IPs[0].Gateway = current.Int(0), nil
	result.Interfaces = []*current.Interface{{Name: args.IfName, Sandbox: args.Netns, Mac: mac(address).String()}}
	result.Routes = nil
	return types.PrintResult(result, conf.CNIVersion)
}

// resolver is what setupIPTable of moby's libnetwork/resolver_unix.go loads in each
// container of a network that users made: queries to 127.0.0.11 reach the ports of the
// embedded DNS server, which is left out. The rules are passed once for each connection,
// but with them every packet of the container is tracked, which is what they cost.
func resolver() *dataplane.Table {
	const tcp, udp = "40001", "40002" // the server takes any free ones
	t := &dataplane.Table{Name: "nat"}
	t.Chain("DOCKER_OUTPUT",
		"-d 127.0.0.11 -p tcp --dport 53 -j DNAT --to-destination 127.0.0.11:"+tcp,
		"-d 127.0.0.11 -p udp --dport 53 -j DNAT --to-destination 127.0.0.11:"+udp)
	t.Chain("DOCKER_POSTROUTING",
		"-s 127.0.0.11 -p tcp --sport "+tcp+" -j SNAT --to-source :53",
		"-s 127.0.0.11 -p udp --sport "+udp+" -j SNAT --to-source :53")
	t.Add("OUTPUT", "-d 127.0.0.11 -j DOCKER_OUTPUT")
	t.Add("POSTROUTING", "-d 127.0.0.11 -j DOCKER_POSTROUTING")
	return t
}

// veth makes the pair, one end in the pod, the other on the overlay's
// bridge.
func veth(conf plugin.Conf, args *skel.CmdArgs, address netip.Addr) error {
	// Sandbox is the file of the overlay's namespace.
	var own struct {
		Sandbox string `json:"sandbox"`
	}
	if err := json.Unmarshal(args.StdinData, &own); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	sandbox, err := netns.Handle(netns.NS{Name: filepath.Base(own.Sandbox), Path: own.Sandbox})
	if err != nil {
		return err
	}
	defer sandbox.Close()
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = fmt.Sprintf("veth%x", sha1.Sum([]byte(args.ContainerID)))[:11], conf.MTU
	if err := plugin.PairInto(sandbox.LinkAdd, args, la, args.IfName, mac(address)); err != nil {
		return err
	}
	return join(sandbox, la.Name)
}
