package explain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// ruled is a campaign with three numbers of policies on one network, a program
// that forwards on another, and pods that are added.
func ruled() report.Input {
	in := report.Input{Campaign: campaign.Campaign{Name: "ruled", Sampling: reporttest.Sampling()}, Environment: reporttest.FixtureEnvironment(), Dir: "results/r"}
	random := rand.New(rand.NewPCG(7, 8))
	sec := 1.0
	var samples []result.Sample
	add := func(block int, c result.Cell, metrics, node map[string]float64) {
		s := result.Sample{Schema: 1, ID: fmt.Sprintf("b%02d-%d", block, len(samples)), Block: block, Attempt: 1, Cell: c, Status: result.StatusOK,
			RequestedSeconds: 1, MeasuredSeconds: &sec, Machines: map[string]string{"client_node": "a", "server_node": "a"}, Metrics: metrics}
		if node != nil {
			s.Probes = map[string]map[string]float64{"client_node": node, "server_node": node}
		}
		samples = append(samples, s)
	}
	for block := 1; block <= 6; block++ {
		for _, policies := range []int{0, 10, 100} {
			c := reporttest.CellOf("calico/direct-policy", "tcp_rr", 64)
			c.Policies = policies
			cost := (20e-6 + 60e-9*float64(policies)) * math.Exp(0.002*random.NormFloat64())
			add(block, c, map[string]float64{"transactions_per_second": 20_000}, map[string]float64{
				"window_seconds": 1, "process_cpu_seconds": cost * 10_000, "ksoftirqd_cpu_seconds": 0,
				unit.NetfilterRules: 90 + 4*float64(policies), unit.NetfilterChains: 46, unit.NetfilterRulesPerPacket: 20 + 2*float64(policies), unit.NetfilterChainsPerPacket: 12,
				unit.NetworkProcesses: 0, unit.ConntrackEntries: 3, unit.ConntrackBytes: 768, unit.IPSetBytes: 3000, unit.EBPFMapBytes: 0,
			})
		}
		add(block, reporttest.CellOf("flannel/udp", "tcp_rr", 64), map[string]float64{"transactions_per_second": 9_000}, map[string]float64{
			"window_seconds": 1, "process_cpu_seconds": 0.5, "ksoftirqd_cpu_seconds": 0,
			unit.NetfilterRules: 4, unit.NetfilterChains: 2, unit.NetworkProcesses: 1, unit.NetworkResidentBytes: 22 << 20,
		})
		for _, pods := range []int{1, 50} {
			c := reporttest.CellOf("flannel/udp", "pod_setup", 0)
			c.Pods = pods
			took := float64(pods) * 0.01 * math.Exp(0.05*random.NormFloat64())
			metrics := map[string]float64{"pod_ready_mean_seconds": 0.02 + took, "pod_device_mean_seconds": 0.01 + took, "pod_address_mean_seconds": 0.004, "pod_added_mean_seconds": 0.015 + took}
			if pods > 1 {
				metrics["pod_kernel_memory_bytes"] = 130_000 + 1000*random.Float64()
			}
			add(block, c, metrics, nil)
		}
	}
	return reporttest.Analyse(in, samples)
}

// What a node has and holds, what policies and rules cost, and what it takes to
// add pods: each figure is of the campaign, and what was not measured is not said.
func TestExplainNode(t *testing.T) {
	text := explain(t, ruled(), screen.Options{Width: 100, Unicode: true})
	reporttest.Golden(t, *update, "explain-node.txt", text)
	text = strings.Join(strings.Fields(text), " ")
	for _, want := range []string{
		"passes 20 of 90 rules, in 12 of 46 chains", "4 rules in 2 chains; their counters do not show how many of them a packet passes",
		"23.1 MB resident in 1 process", "at least 768 B for 3 tracked connections", "with 0, 10 and 100 policies, each further one adds 60",
		"to the CPU time of both ends per transaction; each further rule that its packets pass on average, on their whole path, adds 15", "1 pod answers after 30", "of the kernel's memory",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text says nothing of %q", want)
		}
	}
	if n := strings.Count(text, "fewer policies:"); n != 2 {
		t.Errorf("fewer policies are spoken of %d times, and can be had at two places", n)
	}
	if strings.Contains(explain(t, reporttest.Stacked(), screen.Options{Width: 100}), "On a node") {
		t.Error("a campaign without these probes speaks of nodes")
	}
}

// Packets that pass no rule, and those that pass the same ones however many policies
// there are, have no cost of a rule, each for its own reason.
func TestSweepWordsWithoutRules(t *testing.T) {
	low, high := -1e-9, 3e-9
	sweep := stat.PolicySweep{Cell: reporttest.CellOf("cilium/native-policy", "tcp_crr", 64), Policies: []int{0, 10}, Cost: "own_cpu_seconds_per_transaction",
		PerPolicy: estimate.Estimate{Value: 1e-9, Low: &low, High: &high, N: 2}, RulesPerPacket: &[2]float64{}}
	for _, c := range []struct {
		workload string
		met      [2]float64
		want     string
	}{
		{"tcp_crr", [2]float64{}, "no packet passes a rule of netfilter."},
		{"tcp_rr", [2]float64{41, 41.1}, "41.1 netfilter rules on its path, for any number of policies: those of a connection that is open"},
		{"tcp_crr", [2]float64{41, 41.1}, "for any number of policies."},
	} {
		sweep.Cell.Workload, sweep.RulesPerPacket = c.workload, &c.met
		got := sweepWords(Explanation{Sweeps: []stat.PolicySweep{sweep}})
		if len(got) != 1 || !strings.Contains(got[0], c.want) || !strings.Contains(got[0], "nothing beyond the noise") {
			t.Errorf("%s: %q", c.workload, got)
		}
	}
}
