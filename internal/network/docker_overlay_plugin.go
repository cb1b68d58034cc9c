package network

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
)

// dockerOverlayAdd does to a pod what Join of moby's
// libnetwork/drivers/overlay/joinleave.go does to a container: a veth whose
// other end is on the bridge of the overlay's namespace.
func dockerOverlayAdd(args *skel.CmdArgs) (err error) {
	conf, result, err := ipamAdd(args)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ipamDel(conf, args))
		}
	}()
	address, ok := netip.AddrFromSlice(result.IPs[0].Address.IP.To4())
	if !ok {
		return fmt.Errorf("address %s", result.IPs[0].Address.IP)
	}
	if err := dockerVeth(conf, args, address); err != nil {
		return err
	}
	_, err = onPodDevice(args, func(dev netlink.Link) error {
		if err := netlink.AddrAdd(dev, &netlink.Addr{IPNet: &result.IPs[0].Address}); err != nil {
			return fmt.Errorf("address %s: %w", address, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	result.IPs[0].Interface, result.IPs[0].Gateway = current.Int(0), nil
	result.Interfaces = []*current.Interface{{Name: args.IfName, Sandbox: args.Netns, Mac: dockerMAC(address).String()}}
	result.Routes = nil
	return types.PrintResult(result, conf.CNIVersion)
}

// dockerVeth makes the pair, one end in the pod, the other on the overlay's
// bridge.
func dockerVeth(conf podConf, args *skel.CmdArgs, address netip.Addr) error {
	sandbox, err := netns.Handle(netns.NS{Name: filepath.Base(conf.Sandbox), Path: conf.Sandbox})
	if err != nil {
		return err
	}
	defer sandbox.Close()
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = fmt.Sprintf("veth%x", sha1.Sum([]byte(args.ContainerID)))[:11], conf.MTU
	if err := pairInto(sandbox.LinkAdd, args, la, args.IfName, dockerMAC(address)); err != nil {
		return err
	}
	return dockerJoin(sandbox, la.Name)
}
