package network

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
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed calico_ebpf.conflist
var calicoEBPFConflist string

// What an address is to Calico's programs: ROUTE_… of bpf/calico.c.
const (
	calicoLocalWorkload = 1
	calicoLocalHost     = 2
	calicoRemote        = 4
)

// calicoEBPF is Calico's eBPF dataplane on the veths and routes of
// calico/direct.
func calicoEBPF() Network {
	n := Network{
		Kind:    result.KindOwnPlugin,
		Name:    "calico/ebpf",
		Summary: "Calico's eBPF dataplane without encapsulation: each packet tracked, forwarded by redirects",
		Model: "Calico felix/bpf-gpl tc.c, rpf.h, conntrack.h and fib_co_re.h (the last as of commit 00d080d), by own programs " +
			"(bpf/calico.c) and this program's plugins cnibench-calico and, for Felix, cnibench-calico-ebpf",
		LeavesOut:  "policy programs (run once per connection), services, NAT, IPv6, fragments, ICMP errors, TCP state and clean-up in the connection table (least recently used go), tail calls between programs, Calico's IPAM (host-local instead)",
		NoServices: "its eBPF programs pass packets by the node's rules",
		Needs:      []netns.Feature{netns.Veth(), netns.BPFRedirect(), netns.BPFAtDevice()},
		Plugins:    []string{"host-local"},
		SetUp: func(_ context.Context, self Node, nodes []Node) error {
			if err := calicoNode(self); err != nil {
				return err
			}
			if err := routeByNode(self, nodes); err != nil {
				return err
			}
			if err := netns.Do(self.NS, func() error { return calicoPrograms(self, nodes) }); err != nil {
				return fmt.Errorf("%s: %w", self.Name, err)
			}
			return nil
		},
	}
	n.Conflist = template(calicoEBPFConflist, n)
	return n
}

// calicoPrograms attaches the node's own programs and writes what Felix knows
// of it: its own address, and which addresses are of other nodes' pods.
func calicoPrograms(self Node, nodes []Node) error {
	spec, err := bpf.LoadCalico()
	if err != nil {
		return err
	}
	coll, err := loadEBPF(spec, nil, nil, bpf.CalicoProgCnbFromHep, bpf.CalicoProgCnbToHep)
	if err != nil {
		return err
	}
	defer coll.Close()
	routes := map[netip.Prefix]uint32{netip.PrefixFrom(self.Address.Addr(), 32): calicoLocalHost}
	for _, n := range nodes {
		if n.Index != self.Index {
			routes[n.PodCIDR] = calicoRemote
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
		attachEBPF(dev, ingress(), coll.Programs[bpf.CalicoProgCnbFromHep]),
		attachEBPF(dev, egress(), coll.Programs[bpf.CalicoProgCnbToHep]),
	)
}

func calicoPrefix(p netip.Prefix) bpf.CalicoPrefix {
	return bpf.CalicoPrefix{Prefixlen: uint32(p.Bits()), Address: ebpfAddress(p.Addr())}
}

func calicoRoute(m *ebpf.Map, p netip.Prefix, r bpf.CalicoRoute) error {
	if err := m.Put(calicoPrefix(p), r); err != nil {
		return fmt.Errorf("route to %s: %w", p, err)
	}
	return nil
}

// calicoEBPFConf is the configuration of cnibench-calico-ebpf.
type calicoEBPFConf struct {
	types.NetConf
	Device string `json:"device"` // the node's, whose programs have the node's maps
}

// calicoEBPFRead gives the configuration and the pod's address, which is no
// address where there is no result of cnibench-calico, as on a DEL after an ADD
// that failed.
func calicoEBPFRead(args *skel.CmdArgs) (calicoEBPFConf, netip.Prefix, error) {
	var conf calicoEBPFConf
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

// calicoEBPFAdd comes after cnibench-calico and does what Felix does when it
// finds a new workload: programs at its cali… and its route in the map.
func calicoEBPFAdd(args *skel.CmdArgs) error {
	conf, address, err := calicoEBPFRead(args)
	if err != nil {
		return err
	}
	if !address.IsValid() {
		return errors.New("comes after cnibench-calico in a list, and found no address of it")
	}
	host, err := netlink.LinkByName(calicoHostDevice(args.ContainerID))
	if err != nil {
		return fmt.Errorf("device %s: %w", calicoHostDevice(args.ContainerID), err)
	}
	maps, err := mapsAt(conf.Device, ingress())
	if err != nil {
		return err
	}
	defer maps.close()
	routes, err := maps.need(bpf.CalicoMapCnbRoutes)
	if err != nil {
		return err
	}
	spec, err := bpf.LoadCalico()
	if err != nil {
		return err
	}
	coll, err := loadEBPF(spec, nil, maps, bpf.CalicoProgCnbFromWep, bpf.CalicoProgCnbToWep)
	if err != nil {
		return err
	}
	defer coll.Close()
	local := bpf.CalicoRoute{Flags: calicoLocalWorkload, Ifindex: uint32(host.Attrs().Index)}
	if err := calicoRoute(routes, address, local); err != nil {
		return err
	}
	for program, d := range map[string]direction{bpf.CalicoProgCnbFromWep: ingress(), bpf.CalicoProgCnbToWep: egress()} {
		if err := attachEBPF(host, d, coll.Programs[program]); err != nil {
			return err
		}
	}
	return types.PrintResult(conf.PrevResult, conf.CNIVersion)
}

// calicoEBPFDel takes the pod's route out of the node's map; programs go with
// the pod's device.
func calicoEBPFDel(args *skel.CmdArgs) error {
	conf, address, err := calicoEBPFRead(args)
	if err != nil || !address.IsValid() {
		return err
	}
	maps, err := mapsAt(conf.Device, ingress())
	if errors.Is(err, errNoEBPF) {
		return nil
	}
	if err != nil {
		return err
	}
	defer maps.close()
	routes, err := maps.need(bpf.CalicoMapCnbRoutes)
	if err != nil {
		return err
	}
	if err := routes.Delete(calicoPrefix(address)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("route to %s: %w", address, err)
	}
	return nil
}
