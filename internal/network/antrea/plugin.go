package antrea

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/network/plugin"
)

// Plugins are the CNI plugins of this program that the networks of this folder name.
func Plugins() []plugin.Plugin {
	return []plugin.Plugin{
		{Name: "cnibench-antrea", Funcs: skel.CNIFuncs{Add: add, Del: del, Check: plugin.Check}},
	}
}

// hostDevice is the host's side of a pod's veth: Antrea names it after
// the pod and a hash.
func hostDevice(containerID string) string {
	return fmt.Sprintf("pod-%x", sha1.Sum([]byte(containerID)))[:10]
}

// cookie marks a pod's flows.
func cookie(containerID string) uint32 {
	sum := sha1.Sum([]byte(containerID))
	return binary.BigEndian.Uint32(sum[:]) | 1 // 0 is that of all other flows
}

// antreaOVS is the switch that a plugin's configuration names.
func antreaOVS(args *skel.CmdArgs) (dataplane.OVS, error) {
	var conf struct {
		OVS string `json:"ovs"` // the folder of the node's switch
	}
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return dataplane.OVS{}, fmt.Errorf("configuration: %w", err)
	}
	if conf.OVS == "" {
		return dataplane.OVS{}, errors.New(`configuration: "ovs" is missing`)
	}
	return dataplane.OVS{Dir: conf.OVS}, nil
}

// add does what configureContainerLink and InstallPodFlows of Antrea
// v1.15's pkg/agent/cniserver and pkg/agent/openflow do: a veth on br-int, an
// address and a default route by the node's gateway, and the pod's flows.
func add(args *skel.CmdArgs) (err error) {
	o, err := antreaOVS(args)
	if err != nil {
		return err
	}
	conf, result, err := plugin.IPAMAdd(args)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, plugin.IPAMDel(conf, args))
		}
	}()
	ip := result.IPs[0]
	address, _ := netip.AddrFromSlice(ip.Address.IP.To4())
	ctx := context.Background()
	gateway, err := netlink.LinkByName(antreaGateway)
	if err != nil {
		return fmt.Errorf("device %s: %w", antreaGateway, err)
	}
	host := hostDevice(args.ContainerID)
	if _, err := plugin.Veth(args, host, conf.MTU, nil); err != nil {
		return err
	}
	if err := o.Checksums(ctx, antreaBridge, plugin.NS(args), args.IfName); err != nil {
		return err
	}
	mac, err := plugin.SubnetSide(args, &ip.Address, ip.Gateway)
	if err != nil {
		return err
	}
	if _, err := o.VSCtl(ctx, "--may-exist", "add-port", antreaBridge, host); err != nil {
		return err
	}
	ports, err := o.Ports(ctx, host)
	if err != nil {
		return err
	}
	flows, err := openFlow(podFlows, Tables(), pod{
		Address: address, MAC: mac.String(), GatewayMAC: gateway.Attrs().HardwareAddr.String(),
		Port: ports[0], Cookie: cookie(args.ContainerID),
	})
	if err != nil {
		return err
	}
	if err := o.AddFlows(ctx, antreaBridge, flows); err != nil {
		return err
	}
	result.IPs[0].Interface = current.Int(1)
	result.Interfaces = []*current.Interface{{Name: host}, {Name: args.IfName, Mac: mac.String(), Sandbox: args.Netns}}
	result.Routes = nil
	return types.PrintResult(result, conf.CNIVersion)
}

// del is no error for a pod that does not exist, or was added in part, nor
// where the switch has ended.
func del(args *skel.CmdArgs) error {
	o, err := antreaOVS(args)
	if err != nil {
		return err
	}
	ctx := context.Background()
	_, err = o.VSCtl(ctx, "--if-exists", "del-port", antreaBridge, hostDevice(args.ContainerID))
	switch {
	case err == nil:
		err = o.DelFlows(ctx, antreaBridge, cookie(args.ContainerID))
	case o.Gone(err):
		err = nil
	}
	return errors.Join(err, plugin.Del(args))
}
