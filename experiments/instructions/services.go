package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// services are those of a lab, by one of kube-proxy's modes, among which the
// measured one is.
type services struct {
	Proxy string `json:",omitempty"`
	Count int    `json:",omitempty"` // 0: the traffic is to no service
}

func (s services) String() string { return fmt.Sprintf("%d services by %s", s.Count, s.Proxy) }

// servicesNetwork is the one whose services are counted: the least else.
const servicesNetwork = "bridge"

// serviceCounts are how many are counted by each proxy. To load ten thousand by
// nftables takes the square of their number in the kernel: minutes, under
// emulation.
func serviceCounts() []int { return []int{1, 100, 1000, 10_000} }

func servicesBy() []string { return []string{"iptables", "nftables", "ipvs"} }

// toServices is its traffic. On one node, as all are loaded on each.
func toServices() traffic { return traffic{Workload: udpFlows, Placement: result.IntraHost} }

func serviceSetting(proxy string, count int) setting {
	return setting{Network: servicesNetwork, Services: services{proxy, count}, Traffic: []traffic{toServices()}}
}

// servicePlan counts every number by every proxy.
func servicePlan(samples, packets int) plan {
	p := plan{Samples: samples, Packets: packets}
	for _, n := range serviceCounts() {
		for _, proxy := range servicesBy() {
			p.Settings = append(p.Settings, serviceSetting(proxy, n))
		}
	}
	return p
}

// serviceOrder is what a list and a hash demand of so many services.
func serviceOrder(less string, count int) order {
	return order{
		Claim: "many services in a list cost more than in a hash", Source: theory,
		Less:     subject{Network: servicesNetwork, Services: services{less, count}},
		More:     subject{Network: servicesNetwork, Services: services{"iptables", count}},
		Workload: toServices().Workload, Placement: toServices().Placement,
	}
}

// serviceReport writes docs/service-instructions.md.
func serviceReport(w io.Writer, got counted, p plan) {
	columns := serviceCounts()
	fmt.Fprintf(w, "# Services in instructions\n\n`make bench-services` writes this page. It shows how many instructions a datagram to a service's address takes at both ends together "+
		"(%s %s on %s). Each datagram is a new connection, so the node looks its service up. The columns are numbers of services on the node; "+
		"in a list, the service that receives the traffic is in the middle. These are instructions under emulation, not times. "+
		"[instructions.md](instructions.md) describes how they are counted. Kernel %s; %d samples of %d datagrams each; intervals are of %.0f %%.\n\n| proxy |",
		toServices().Workload, toServices().Placement, servicesNetwork, got.kernel, p.Samples, p.Packets, 100*confidence)
	for _, n := range columns {
		fmt.Fprintf(w, " %d |", n)
	}
	fmt.Fprint(w, " instructions per service |\n|---|"+strings.Repeat("---:|", len(columns)+1)+"\n")
	for _, proxy := range servicesBy() {
		r := row{head: proxy}
		for _, n := range columns {
			counts, err := got.find(subject{Network: servicesNetwork, Services: services{proxy, n}}, toServices().Workload, toServices().Placement, 0)
			r.add(n, counts, err)
		}
		fmt.Fprintln(w, r)
	}
	var orders []order
	for _, n := range columns[2:] {
		orders = append(orders, serviceOrder("nftables", n), serviceOrder("ipvs", n))
	}
	fmt.Fprint(w, "\n## Orders\n\nWhat theory requires, compared with the counts.\n\n")
	orderTable(w, got, orders)
}
