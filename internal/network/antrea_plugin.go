package network

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

	"github.com/cnibench/cnibench/internal/netns"
)

// antreaHostDevice is the host's side of a pod's veth: Antrea names it after
// the pod and a hash.
func antreaHostDevice(containerID string) string {
	return fmt.Sprintf("pod-%x", sha1.Sum([]byte(containerID)))[:10]
}

// antreaCookie marks a pod's flows.
func antreaCookie(containerID string) uint32 {
	sum := sha1.Sum([]byte(containerID))
	return binary.BigEndian.Uint32(sum[:]) | 1 // 0 is that of all other flows
}

// antreaOVS is the switch that a plugin's configuration names.
func antreaOVS(args *skel.CmdArgs) (ovs, error) {
	var conf struct {
		OVS string `json:"ovs"` // the folder of the node's switch
	}
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return ovs{}, fmt.Errorf("configuration: %w", err)
	}
	if conf.OVS == "" {
		return ovs{}, errors.New(`configuration: "ovs" is missing`)
	}
	return ovs{dir: conf.OVS}, nil
}

// antreaAdd does what configureContainerLink and InstallPodFlows of Antrea
// v1.15's pkg/agent/cniserver and pkg/agent/openflow do: a veth on br-int, an
// address and a default route by the node's gateway, and the pod's flows.
func antreaAdd(args *skel.CmdArgs) (err error) {
	o, err := antreaOVS(args)
	if err != nil {
		return err
	}
	conf, result, err := ipamAdd(args)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ipamDel(conf, args))
		}
	}()
	ip := result.IPs[0]
	address, _ := netip.AddrFromSlice(ip.Address.IP.To4())
	ctx := context.Background()
	gateway, err := netlink.LinkByName(antreaGateway)
	if err != nil {
		return fmt.Errorf("device %s: %w", antreaGateway, err)
	}
	host := antreaHostDevice(args.ContainerID)
	if _, err := podVeth(args, host, conf.MTU, nil); err != nil {
		return err
	}
	if err := antreaChecksums(ctx, o, args); err != nil {
		return err
	}
	mac, err := subnetPodSide(args, &ip.Address, ip.Gateway)
	if err != nil {
		return err
	}
	if _, err := o.vsctl(ctx, "--may-exist", "add-port", antreaBridge, host); err != nil {
		return err
	}
	ports, err := o.ports(ctx, host)
	if err != nil {
		return err
	}
	flows, err := openFlow(antreaPodFlows, AntreaTables(), antreaPod{
		Address: address, MAC: mac.String(), GatewayMAC: gateway.Attrs().HardwareAddr.String(),
		Port: ports[0], Cookie: antreaCookie(args.ContainerID),
	})
	if err != nil {
		return err
	}
	if err := o.addFlows(ctx, antreaBridge, flows); err != nil {
		return err
	}
	result.IPs[0].Interface = current.Int(1)
	result.Interfaces = []*current.Interface{{Name: host}, {Name: args.IfName, Mac: mac.String(), Sandbox: args.Netns}}
	result.Routes = nil
	return types.PrintResult(result, conf.CNIVersion)
}

// antreaChecksums has the pod sum up its packets itself where the switch is in user
// space: that would pass them on without.
func antreaChecksums(ctx context.Context, o ovs, args *skel.CmdArgs) error {
	datapath, err := o.vsctl(ctx, "get", "Bridge", antreaBridge, "datapath_type")
	if err != nil || datapath != ovsUser+"\n" {
		return err
	}
	return netns.OffloadsOff(podNS(args), args.IfName)
}

// antreaDel is no error for a pod that is not there, or was added in part, nor
// where the switch has ended.
func antreaDel(args *skel.CmdArgs) error {
	o, err := antreaOVS(args)
	if err != nil {
		return err
	}
	ctx := context.Background()
	_, err = o.vsctl(ctx, "--if-exists", "del-port", antreaBridge, antreaHostDevice(args.ContainerID))
	switch {
	case err == nil:
		err = o.delFlows(ctx, antreaBridge, antreaCookie(args.ContainerID))
	case o.gone(err):
		err = nil
	}
	return errors.Join(err, podDel(args))
}
