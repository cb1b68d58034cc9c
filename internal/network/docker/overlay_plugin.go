package docker

import (
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
	result.IPs[0].Interface, result.IPs[0].Gateway = current.Int(0), nil
	result.Interfaces = []*current.Interface{{Name: args.IfName, Sandbox: args.Netns, Mac: mac(address).String()}}
	result.Routes = nil
	return types.PrintResult(result, conf.CNIVersion)
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
