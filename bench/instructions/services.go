package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
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

// serviceCounts are how many are counted by a proxy. To load ten thousand by
// nftables or ipvs takes the square of their number in the kernel: longer, under
// emulation, than all else.
func serviceCounts(proxy string) []int {
	if proxy == "iptables" {
		return []int{1, 100, 1000, 10_000}
	}
	return []int{1, 100, 1000}
}

func servicesBy() []string { return []string{"iptables", "nftables", "ipvs"} }

// toServices is its traffic. On one node, as all are loaded on each.
func toServices() traffic { return traffic{Workload: udpFlows, Placement: result.IntraHost} }

func serviceSetting(proxy string, count int) setting {
	return setting{Network: servicesNetwork, Services: services{proxy, count}, Traffic: []traffic{toServices()}}
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

func serviceTable(w io.Writer, got counted) {
	fmt.Fprintf(w, "\n## Cost of a service\n\nServices on the node of %s of which one is sent to, %s %s: each datagram is a new connection, "+
		"so its service is looked up. In a list it stands in the middle.\n\n| proxy |", servicesNetwork, toServices().Workload, toServices().Placement)
	columns := serviceCounts("iptables")
	for _, n := range columns {
		fmt.Fprintf(w, " %d |", n)
	}
	fmt.Fprint(w, " instructions per service |\n|---|"+strings.Repeat("---:|", len(columns)+1)+"\n")
	for _, proxy := range servicesBy() {
		r := row{head: proxy}
		for _, n := range columns {
			counts, err := []float64(nil), errors.New("not loaded")
			if slices.Contains(serviceCounts(proxy), n) {
				counts, err = got.find(subject{Network: servicesNetwork, Services: services{proxy, n}}, toServices().Workload, toServices().Placement, 0)
			}
			r.add(n, counts, err)
		}
		fmt.Fprintln(w, r)
	}
}
