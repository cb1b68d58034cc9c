package calico

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/bpf"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed ebpf.conflist
var ebpfConflist string

// What an address is to Calico's programs: ROUTE_… of bpf/calico.c.
const (
	localWorkload = 1
	localHost     = 2
	remote        = 4
)

// EBPF is Calico's eBPF dataplane on the veths and routes of
// calico/direct.
func EBPF() network.Network {
	n := network.Network{
		Kind:    result.KindOwnPlugin,
		Name:    "calico/ebpf",
		Summary: "Calico's eBPF dataplane without encapsulation: each packet tracked, forwarded by redirects",
		Model: "Calico felix/bpf-gpl tc.c, rpf.h, conntrack.h and fib_co_re.h (the last as of commit 00d080d), by own programs " +
			"(bpf/calico.c) and this program's plugins cnibench-calico and, for Felix, cnibench-calico-ebpf",
		LeavesOut:     "policy programs (run once per connection), services, NAT, IPv6, fragments, ICMP errors, TCP state and clean-up in the connection table (least recently used go), tail calls between programs, Calico's IPAM (host-local instead)",
		NeedsEthernet: "its eBPF programs take Ethernet frames at the node's device, and WireGuard's device has packets without",
		NoServices:    "its eBPF programs pass packets by the node's rules",
		Needs:         []netns.Feature{netns.Veth(), netns.BPFRedirect(), netns.BPFAtDevice()},
		Plugins:       []string{"host-local"},
		SetUp: func(_ context.Context, self network.Node, nodes []network.Node) error {
			if err := node(self); err != nil {
				return err
			}
			if err := network.RouteByNode(self, nodes); err != nil {
				return err
			}
			if err := netns.Do(self.NS, func() error { return programs(self, nodes) }); err != nil {
				return fmt.Errorf("%s: %w", self.Name, err)
			}
			return nil
		},
	}
	n.Conflist = network.Template(ebpfConflist, n)
	return n
}

// programs attaches the node's own programs and writes what Felix knows
// of it: its own address, and which addresses are of other nodes' pods.
func programs(self network.Node, nodes []network.Node) error {
	spec, err := bpf.LoadCalico()
	if err != nil {
		return err
	}
	coll, err := dataplane.LoadEBPF(spec, nil, nil, bpf.CalicoProgCnbFromHep, bpf.CalicoProgCnbToHep)
	if err != nil {
		return err
	}
	defer coll.Close()
	routes := map[netip.Prefix]uint32{netip.PrefixFrom(self.Address.Addr(), 32): localHost}
	for _, n := range nodes {
		if n.Index != self.Index {
			routes[n.PodCIDR] = remote
		}
	}
	for prefix, flags := range routes {
		if err := calicoRoute(coll.Maps[bpf.CalicoMapCnbRoutes], prefix, bpf.CalicoRoute{Flags: flags}); err != nil {
			return err
		}
	}
	dev, err := netlink.LinkByName(self.Device)
	if err != nil {
		return fmt.Errorf("device %s: %w", self.Device, err)
	}
	return errors.Join(
		dataplane.AttachEBPF(dev, dataplane.Ingress(), coll.Programs[bpf.CalicoProgCnbFromHep]),
		dataplane.AttachEBPF(dev, dataplane.Egress(), coll.Programs[bpf.CalicoProgCnbToHep]),
	)
}

func calicoPrefix(p netip.Prefix) bpf.CalicoPrefix {
	return bpf.CalicoPrefix{Prefixlen: uint32(p.Bits()), Address: dataplane.EBPFAddress(p.Addr())}
}

func calicoRoute(m *ebpf.Map, p netip.Prefix, r bpf.CalicoRoute) error {
	if err := m.Put(calicoPrefix(p), r); err != nil {
		return fmt.Errorf("route to %s: %w", p, err)
	}
	return nil
}

// ebpfConf is the configuration of cnibench-calico-ebpf.
type ebpfConf struct {
	types.NetConf
	Device string `json:"device"` // the node's, whose programs have the node's maps
}

// ebpfRead gives the configuration and the pod's address, which is no
// address where there is no result of cnibench-calico, as on a DEL after an ADD
// that failed.
func ebpfRead(args *skel.CmdArgs) (ebpfConf, netip.Prefix, error) {
	var conf ebpfConf
	var none netip.Prefix
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return conf, none, fmt.Errorf("configuration: %w", err)
	}
	if err := version.ParsePrevResult(&conf.NetConf); err != nil {
		return conf, none, err
	}
	if conf.PrevResult == nil {
		return conf, none, nil
	}
	result, err := current.NewResultFromResult(conf.PrevResult)
	if err != nil || len(result.IPs) == 0 {
		return conf, none, err
	}
	a, _ := netip.AddrFromSlice(result.IPs[0].Address.IP.To4())
	return conf, netip.PrefixFrom(a, 32), nil
}

// ebpfAdd comes after cnibench-calico and does what Felix does when it
// finds a new workload: programs at its cali… and its route in the map.
func ebpfAdd(args *skel.CmdArgs) error {
	conf, address, err := ebpfRead(args)
	if err != nil {
		return err
	}
	if !address.IsValid() {
		return errors.New("comes after cnibench-calico in a list, and found no address of it")
	}
	host, err := netlink.LinkByName(hostDevice(args.ContainerID))
	if err != nil {
		return fmt.Errorf("device %s: %w", hostDevice(args.ContainerID), err)
	}
	maps, err := dataplane.MapsAt(conf.Device, dataplane.Ingress())
	if err != nil {
		return err
	}
	defer maps.Close()
	routes, err := maps.Need(bpf.CalicoMapCnbRoutes)
	if err != nil {
		return err
	}
	spec, err := bpf.LoadCalico()
	if err != nil {
		return err
	}
	coll, err := dataplane.LoadEBPF(spec, nil, maps, bpf.CalicoProgCnbFromWep, bpf.CalicoProgCnbToWep)
	if err != nil {
		return err
	}
	defer coll.Close()
	local := bpf.CalicoRoute{Flags: localWorkload, Ifindex: uint32(host.Attrs().Index)}
	if err := calicoRoute(routes, address, local); err != nil {
		return err
	}
	for program, d := range map[string]dataplane.Direction{bpf.CalicoProgCnbFromWep: dataplane.Ingress(), bpf.CalicoProgCnbToWep: dataplane.Egress()} {
		if err := dataplane.AttachEBPF(host, d, coll.Programs[program]); err != nil {
			return err
		}
	}
	return types.PrintResult(conf.PrevResult, conf.CNIVersion)
}

// ebpfDel takes the pod's route out of the node's map; programs go with
// the pod's device.
func ebpfDel(args *skel.CmdArgs) error {
	conf, address, err := ebpfRead(args)
	if err != nil || !address.IsValid() {
		return err
	}
	maps, err := dataplane.MapsAt(conf.Device, dataplane.Ingress())
	if errors.Is(err, dataplane.ErrNoEBPF) {
		return nil
	}
	if err != nil {
		return err
	}
	defer maps.Close()
	routes, err := maps.Need(bpf.CalicoMapCnbRoutes)
	if err != nil {
		return err
	}
	if err := routes.Delete(calicoPrefix(address)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("route to %s: %w", address, err)
	}
	return nil
}
