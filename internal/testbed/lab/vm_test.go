package lab

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
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

// testsOfFeatures are one test for each of featuresInVM: those of links, of flowtables, of
// encryption, of service proxies, and of the first network that needs the feature. OVN has the
// kernel's Open vSwitch nowhere else.
func testsOfFeatures() []string {
	all := []string{"^TestEncryption$/^wireguard$", "^TestAggregatedLink", "^TestFibreDelays$", "^TestFlowtable$", "^TestPodsReachEachOther$/^" + vmName(ovnName) + "$"}
	for _, p := range catalog.ServiceProxies() {
		if p.Family == "" && slices.ContainsFunc(p.Needs, inVM) {
			all = append(all, "^TestAServiceReachesAllItsBackends$/^"+p.Name+"$")
		}
	}
	shown := map[string]bool{}
	for _, n := range networksInVM() {
		for _, f := range n.Needs {
			if inVM(f) && !shown[f.Name] {
				shown[f.Name] = true
				all = append(all, "^TestPodsReachEachOther$/^"+vmName(n.Name)+"$")
			}
		}
	}
	return all
}

// testsInVM are all tests to run there: of links, of Open vSwitch, and those that
// go through all networks and service proxies, for those that need one of the
// features.
func testsInVM() []string {
	all := append(testsOfFeatures(), "^TestEncryption$/^ipsec$", "^TestOVS", "^TestOVN", "^TestKubeOVN", "^TestSockmap$/^"+vmName(sockmapByOVS)+"$")
	for _, p := range catalog.ServiceProxies() {
		if p.Family != "" { // its first network shows it, in a minute
			all = append(all, "^TestAServiceReachesAllItsBackends$/^"+p.Name+"$/^"+vmName(familyOf(p)[0])+"$")
			continue
		}
		if slices.ContainsFunc(p.Needs, inVM) {
			all = append(all, "^TestManyServices$/^"+p.Name+"$", "^TestServiceUpdate$/^"+p.Name+"$")
		}
	}
	for _, n := range networksInVM() {
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

// networksInVM are those that need one of the features.
func networksInVM() []network.Network {
	return slices.DeleteFunc(catalog.List(), func(n network.Network) bool {
		return !slices.ContainsFunc(n.Needs, inVM)
	})
}

// vmName is a network in a pattern of tests' names, without its first ^ and last $.
func vmName(network string) string {
	return strings.ReplaceAll(strings.ReplaceAll(network, "+", "[+]"), "/", "$/^")
}

// TestInVM proves in Debian's stock kernel each feature that this machine's kernel may lack,
// by one network, link or service proxy.
func TestInVM(t *testing.T) {
	needLab(t)
	vm.Tests(t, strings.Join(testsOfFeatures(), "|"))
}

// TestEveryNetworkInVM proves there all networks and service proxies that need one of the
// features.
func TestEveryNetworkInVM(t *testing.T) {
	needLab(t)
	labtest.Long(t)
	vm.Tests(t, strings.Join(testsInVM(), "|"))
}

// TestNetkitInVM proves the networks with netkit in the kernel of Debian's backports: pods reach
// each other, samples verify the devices, programs carry the traffic and go with the lab.
func TestNetkitInVM(t *testing.T) {
	needLab(t)
	all := []string{"^TestNetkit$"}
	for _, name := range netkitNetworks() {
		for _, test := range []string{"TestPodsReachEachOther", "TestEBPF", "TestEBPFGoesWithTheLab"} {
			all = append(all, "^"+test+"$/^"+vmName(name)+"$")
		}
	}
	vm.TestsOnBackports(t, strings.Join(all, "|"))
}
