package netns

import (
	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// Netkit is pairs of devices like veth pairs, whose eBPF programs run when a side sends.
func Netkit() Feature {
	f := device("netkit", "pod interfaces for eBPF (cilium/native+netkit)", "", "")
	f.Cure = "a kernel from Linux 6.7 on, with CONFIG_NETKIT" // which is never a module
	return f
}

// Flowtable is nftables' flowtable: packets of known connections bypass routing and rules.
func Flowtable() Feature {
	const name = "nf_flow_table"
	return Feature{Name: name, Doc: "nftables' flowtable (bridge+flowtable)", Cure: cureByModule("nf_flow_table_inet", "CONFIG_NF_FLOW_TABLE_INET"), Probe: func() error {
		return throwaway(func() error {
			c, err := nftables.New()
			if err != nil {
				return err
			}
			t := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "cnb-probe"})
			c.AddFlowtable(&nftables.Flowtable{
				Table: t, Name: "probe", Hooknum: nftables.FlowtableHookIngress, Priority: nftables.FlowtablePriorityFilter, Devices: []string{"lo"},
			})
			return missingIf(name, c.Flush(), unix.ENOENT, unix.EOPNOTSUPP, unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT)
		})
	}}
}
