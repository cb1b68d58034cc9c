package lab

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/vm"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
)

// featuresInVM are those that a kernel may well lack and Debian's stock kernel
// has: what needs one of them is tested there, whatever this machine has.
func featuresInVM() []string {
	return []string{"ipip", "geneve", "ipvlan", "wireguard", "openvswitch", "openvswitch or tun", "ip_vs", "bond", "netem", "nf_flow_table"}
}

func inVM(f netns.Feature) bool { return slices.Contains(featuresInVM(), f.Name) }

// testsInVM are the tests to run there: of links, of Open vSwitch, and those that
// go through all networks and service proxies, for those that need one of the
// features.
func testsInVM() []string {
	all := []string{"^TestEncryption$/^wireguard$", "^TestEncryption$/^ipsec$", "^TestAggregatedLink", "^TestFibreDelays$", "^TestFlowtable$", "^TestOVS", "^TestSockmap$/^" + vmName(sockmapByOVS) + "$"}
	for _, p := range catalog.ServiceProxies() {
		if p.Family != "" { // its first network shows it, in a minute
			all = append(all, "^TestAServiceReachesAllItsBackends$/^"+p.Name+"$/^"+vmName(familyOf(p)[0])+"$")
			continue
		}
		if slices.ContainsFunc(p.Needs, inVM) {
			all = append(all, "^TestAServiceReachesAllItsBackends$/^"+p.Name+"$", "^TestManyServices$/^"+p.Name+"$", "^TestServiceUpdate$/^"+p.Name+"$")
		}
	}
	for _, n := range catalog.List() {
		if !slices.ContainsFunc(n.Needs, inVM) || strings.HasPrefix(n.Name, "ovn/") {
			continue // its tests have not finished under emulation yet
		}
		tests := []string{"TestPodsReachEachOther"}
		if slices.Contains(denied(), n.Name) {
			tests = append(tests, "TestPolicyDenies")
		}
		if slices.ContainsFunc(ebpfNetworks(), func(e network.Network) bool { return e.Name == n.Name }) {
			tests = append(tests, "TestEBPF", "TestEBPFGoesWithTheLab")
		}
		for _, test := range tests {
			all = append(all, "^"+test+"$/^"+vmName(n.Name)+"$")
		}
	}
	return all
}

// vmName is a network in a pattern of tests' names, without its first ^ and last $.
func vmName(network string) string {
	return strings.ReplaceAll(strings.ReplaceAll(network, "+", "[+]"), "/", "$/^")
}

// TestInVM proves in Debian's stock kernel what this machine's kernel may lack.
func TestInVM(t *testing.T) {
	needLab(t)
	vm.Tests(t, strings.Join(testsInVM(), "|"))
}
