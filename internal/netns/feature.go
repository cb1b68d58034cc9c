package netns

import (
	"errors"
	"fmt"
	"os"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Feature is something that a kernel has or lacks, found by trying it in a
// namespace made for that. Where the kernel can load modules, trying loads the
// module, as using the feature would.
type Feature struct {
	Name  string // "vxlan"
	Doc   string // what it is for, one line
	Cure  string // what would bring it: "modprobe vxlan, or a kernel with CONFIG_VXLAN"
	Probe func() error
}

// MissingError says that the kernel lacks a feature. Its text is short, as it
// becomes a sample's reason: "kernel has no vxlan".
type MissingError struct {
	Feature string
	Err     error // what the kernel answered
}

func (e *MissingError) Error() string { return "kernel has no " + e.Feature }

func (e *MissingError) Unwrap() error { return e.Err }

// Features is every feature that is known, in the order in which doctor shows
// them.
func Features() []Feature {
	return []Feature{
		Veth(), Bridge(), BridgeNetfilter(), VXLAN(), MACVLAN(), IPVLAN(), IPIP(), GRE(), Geneve(),
		WireGuard(), ESP(), ESP6(), TUN(), IFB(), Dummy(), Bonding(), VRF(), VLAN(), OpenVSwitch(), IPVS(),
		TBF(), HTB(), Netem(), FQ(), FQCoDel(), Clsact(),
		IPv6(), IPTables(), NFTables(), IPSet(), Conntrack(),
		BPFAtDevice(), BPFRedirect(), BPFSockmap(), BPFSocketAddress(), NativeXDP(), TCX(), Cgroup2(), BigTCP(),
		Netkit(), Flowtable(),
	}
}

// Veth is the pods' interfaces and the links between nodes.
func Veth() Feature {
	return device("veth", "pod interfaces, links between nodes", "CONFIG_VETH", "veth")
}

// Bridge is the fabric's switch and the bridge of many networks.
func Bridge() Feature {
	return device("bridge", "the fabric's switch, bridge networks", "CONFIG_BRIDGE", "bridge")
}

// VXLAN is VXLAN tunnels.
func VXLAN() Feature {
	return device("vxlan", "VXLAN tunnels (flannel/vxlan)", "CONFIG_VXLAN", "vxlan")
}

// MACVLAN is devices that share another's wire.
func MACVLAN() Feature {
	return device("macvlan", "the network macvlan", "CONFIG_MACVLAN", "macvlan")
}

// IPVLAN is devices that share another's wire and hardware address.
func IPVLAN() Feature {
	return device("ipvlan", "the networks ipvlan", "CONFIG_IPVLAN", "ipvlan")
}

// IPIP is IP in IP tunnels.
func IPIP() Feature { return device("ipip", "IP in IP tunnels", "CONFIG_NET_IPIP", "ipip") }

// GRE is GRE tunnels.
func GRE() Feature { return device("gre", "GRE tunnels", "CONFIG_NET_IPGRE", "ip_gre") }

// Geneve is Geneve tunnels.
func Geneve() Feature { return device("geneve", "Geneve tunnels", "CONFIG_GENEVE", "geneve") }

// WireGuard is WireGuard tunnels.
func WireGuard() Feature {
	return device("wireguard", "encryption between nodes", "CONFIG_WIREGUARD", "wireguard")
}

// IFB is intermediate devices for shaping what arrives.
func IFB() Feature { return device("ifb", "shaping of what arrives", "CONFIG_IFB", "ifb") }

// Dummy is devices that lead nowhere.
func Dummy() Feature { return device("dummy", "devices that lead nowhere", "CONFIG_DUMMY", "dummy") }

// Bonding is link aggregation.
func Bonding() Feature { return device("bond", "link aggregation", "CONFIG_BONDING", "bonding") }

// VRF is routing tables per device.
func VRF() Feature { return device("vrf", "routing tables per device", "CONFIG_NET_VRF", "vrf") }

// VLAN is 802.1Q tags.
func VLAN() Feature { return device("vlan", "802.1Q tags", "CONFIG_VLAN_8021Q", "8021q") }

// TUN is found by opening its device file.
func TUN() Feature {
	return Feature{Name: "tun", Doc: "user-space tunnels", Cure: cureByModule("tun", "CONFIG_TUN"), Probe: func() error {
		f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
		if err != nil {
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
				return &MissingError{"tun", err}
			}
			return err
		}
		return f.Close()
	}}
}

// TBF is the token bucket that shapes links.
func TBF() Feature { return qdisc("tbf", "shaped links", "CONFIG_NET_SCH_TBF") }

// HTB is shaping by class.
func HTB() Feature { return qdisc("htb", "shaping by class", "CONFIG_NET_SCH_HTB") }

// Netem is delay and loss.
func Netem() Feature { return qdisc("netem", "delay and loss on links", "CONFIG_NET_SCH_NETEM") }

// FQ is fair queues with pacing.
func FQ() Feature { return qdisc("fq", "fair queues with pacing", "CONFIG_NET_SCH_FQ") }

// FQCoDel is fair queues with controlled delay.
func FQCoDel() Feature { return qdisc("fq_codel", "fair queues", "CONFIG_NET_SCH_FQ_CODEL") }

// Clsact is where eBPF programs are attached to a device.
func Clsact() Feature { return qdisc("clsact", "eBPF at a device", "CONFIG_NET_SCH_INGRESS") }

// BridgeNetfilter is bridged packets passing iptables, which the documents of
// Kubernetes ask for.
func BridgeNetfilter() Feature {
	return file("br_netfilter", "bridged packets pass iptables, as Kubernetes asks for",
		"CONFIG_BRIDGE_NETFILTER", "net/bridge/bridge-nf-call-iptables")
}

// IPv6 is the other address family.
func IPv6() Feature {
	return file("ipv6", "address family ipv6", "CONFIG_IPV6", "net/ipv6/conf/all/forwarding")
}

// Conntrack is connection tracking. Where its setting does not exist, its table is
// asked for, which loads it where it is a module, as the first rule would.
func Conntrack() Feature {
	f := file("nf_conntrack", "NAT, services, policy", "CONFIG_NF_CONNTRACK", "net/netfilter/nf_conntrack_max")
	there := f.Probe
	f.Probe = func() error {
		err := there()
		if err == nil {
			return nil
		}
		// Whether the kernel answers this question is not what was asked.
		_ = throwaway(func() error {
			_, _ = netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
			return nil
		})
		return there()
	}
	return f
}

// IPTables is the legacy filter table. iptables-nft needs nf_tables instead.
func IPTables() Feature {
	return Feature{Name: "ip_tables", Doc: "iptables-legacy", Cure: cureByModule("iptable_filter", "CONFIG_IP_NF_IPTABLES_LEGACY"), Probe: func() error {
		return throwaway(func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return missingIf("ip_tables", probeIPTablesInfo(fd), unix.ENOPROTOOPT, unix.ENOENT)
		})
	}}
}

// NFTables is nftables.
func NFTables() Feature {
	return Feature{Name: "nf_tables", Doc: "nftables, iptables-nft", Cure: cureByModule("nf_tables", "CONFIG_NF_TABLES"), Probe: func() error {
		return throwaway(func() error {
			c, err := nftables.New()
			if err != nil {
				return err
			}
			_, err = c.ListTables()
			return missingIf("nf_tables", err, unix.EOPNOTSUPP, unix.EINVAL, unix.EPROTONOSUPPORT)
		})
	}}
}

// IPSet is sets of addresses for iptables.
func IPSet() Feature {
	return Feature{Name: "ip_set", Doc: "sets of addresses for iptables", Cure: cureByModule("ip_set", "CONFIG_IP_SET"), Probe: func() error {
		return throwaway(func() error {
			_, _, err := netlink.IpsetProtocol()
			return missingIf("ip_set", err, unix.EOPNOTSUPP, unix.EINVAL, unix.EPROTONOSUPPORT)
		})
	}}
}

// OpenVSwitch is the kernel's own datapath of Open vSwitch.
func OpenVSwitch() Feature {
	return family("openvswitch", "Open vSwitch in the kernel", "CONFIG_OPENVSWITCH", "ovs_datapath")
}

// IPVS is kube-proxy's mode ipvs.
func IPVS() Feature {
	return family("ip_vs", "kube-proxy's mode ipvs", "CONFIG_IP_VS", "IPVS")
}

// device tries to make a device of a kind without attributes: a kernel that
// does not know the kind says EOPNOTSUPP, whatever else may be wrong.
func device(kind, doc, config, module string) Feature {
	return Feature{Name: kind, Doc: doc, Cure: cureByModule(module, config), Probe: func() error {
		return throwaway(func() error {
			la := netlink.NewLinkAttrs()
			la.Name, la.ParentIndex = "cnb0", 1 // loopback, for kinds that need another device below them
			return known(kind, netlink.LinkAdd(&netlink.GenericLink{LinkAttrs: la, LinkType: kind}), unix.EOPNOTSUPP)
		})
	}}
}

// qdisc tries to attach a queueing discipline without options to loopback: a
// kernel that does not know it says ENOENT.
func qdisc(kind, doc, config string) Feature {
	return Feature{Name: kind, Doc: doc, Cure: cureByModule("sch_"+kind, config), Probe: func() error {
		return throwaway(func() error {
			attrs := netlink.QdiscAttrs{LinkIndex: 1, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
			if kind == "clsact" {
				attrs.Handle, attrs.Parent = netlink.MakeHandle(0xffff, 0), netlink.HANDLE_CLSACT
			}
			return known(kind, netlink.QdiscAdd(&netlink.GenericQdisc{QdiscAttrs: attrs, QdiscType: kind}), unix.ENOENT)
		})
	}}
}

// file looks for a setting that comes with a feature.
func file(name, doc, config, path string) Feature {
	return Feature{Name: name, Doc: doc, Cure: cureByModule(name, config), Probe: func() error {
		return throwaway(func() error {
			_, err := readSysctl(path)
			return missingIf(name, err, unix.ENOENT)
		})
	}}
}

// family asks for a generic netlink family.
func family(name, doc, config, family string) Feature {
	return Feature{Name: name, Doc: doc, Cure: cureByModule(name, config), Probe: func() error {
		return throwaway(func() error {
			_, err := netlink.GenlFamilyGet(family)
			return missingIf(name, err, unix.ENOENT)
		})
	}}
}

func cureByModule(module, config string) string {
	return fmt.Sprintf("modprobe %s, or a kernel with %s", module, config)
}

// missingIf makes a *MissingError of the answers that a kernel without the
// feature gives.
func missingIf(name string, err error, answers ...error) error {
	for _, a := range answers {
		if errors.Is(err, a) {
			return &MissingError{name, err}
		}
	}
	return err
}

// known is missingIf for requests that are incomplete on purpose: any answer
// shows that the kernel knows the kind, but for the one that says that it does
// not, and those that say that we may not ask.
func known(name string, err error, unknown error) error {
	var answer unix.Errno
	switch {
	case errors.Is(err, unknown):
		return &MissingError{name, err}
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("probe of %s: %w (needs root)", name, err)
	case err != nil && !errors.As(err, &answer):
		return fmt.Errorf("probe of %s: %w", name, err) // the kernel was not asked
	}
	return nil
}
