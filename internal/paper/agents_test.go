package paper

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

const agentsCampaign = `name: mine-kubernetes
testbed: kubernetes
clusters:
  - {name: flannel, context: flannel, network: flannel/vxlan}
  - {name: cilium, context: cilium, network: cilium/native}
workloads: [{name: tcp_stream, message_bytes: [1472]}]
`

// agentsClaims compare two networks that two clusters have, and one of them with its own bare
// network.
const agentsClaims = goodClaims + `  - id: agents
    kind: finding
    where: there
    quote: agents
    published: one is more
    testbed: kubernetes
    metric: throughput_bits_per_second
    left: {network: cilium/native}
    relation: greater
    right: {network: flannel/vxlan}
  - id: bare
    kind: question
    where: there
    quote: bare
    published: the bare network is more
    testbed: kubernetes
    metric: throughput_bits_per_second
    left: {network: [cilium/native, flannel/vxlan]}
    relation: less
    right: {network: host}
`

func agentsFolder(claims, clusters string) fstest.MapFS {
	papers := folder(strings.Replace(goodPaper, "tables:", "cells: {link: unshaped, profile: default_settings, mtu: 1500, path: pod-to-pod, placement: inter-host, workload: tcp_stream}\ntables:", 1), claims)
	if clusters != "" {
		papers["mine/kubernetes.yaml"] = &fstest.MapFile{Data: []byte(clusters)}
	}
	return papers
}

func loadAgents(t *testing.T) Paper {
	t.Helper()
	p, err := Load(agentsFolder(agentsClaims, agentsCampaign), "mine", program(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLoadAgents: a second campaign measures the claims about agents, and nothing else does.
func TestLoadAgents(t *testing.T) {
	p := loadAgents(t)
	if slices.ContainsFunc(p.Used, func(c result.Cell) bool { return c.Cluster != "" }) || len(p.Used) != 2 {
		t.Errorf("campaign.yaml is measured in %v", p.Used)
	}
	part, ok := p.OfAgents()
	if !ok || !part.AgentsOnly() || len(part.Claims) != 2 || len(part.uses) != 2 || len(part.Used) != 4 || len(part.Tables) != 0 || string(part.Campaign) != agentsCampaign {
		t.Errorf("%d claims, %d tables, cells %v", len(part.Claims), len(part.Tables), part.Used)
	}
	if len(p.Measured()) != 1 || len(part.Measured()) != 2 || len(p.Tables) != 2 {
		t.Errorf("campaign.yaml measures %d claims, kubernetes.yaml %d", len(p.Measured()), len(part.Measured()))
	}
	if want := []result.Cell{clustered("cilium", "cilium/native"), clustered("flannel", "flannel/vxlan")}; !slices.Equal(bareAll(p.uses[1]), want) {
		t.Errorf("%v, want %v", bareAll(p.uses[1]), want)
	}
	if text := string(Readme(p)); strings.Count(text, ", on a Kubernetes") != 2 {
		t.Errorf("%s", text)
	}
	if _, ok := load(t, "volpert2022").OfAgents(); ok {
		t.Error("a paper without kubernetes.yaml has a part on clusters")
	}
}

// clustered is a cell of a cluster.
func clustered(cluster, network string) result.Cell {
	return cellOf(network, func(c *result.Cell) { c.Cluster, c.Link = cluster, "unshaped" })
}

func bareAll(cells []result.Cell) []result.Cell {
	var out []result.Cell
	for _, c := range cells {
		out = append(out, bare(c))
	}
	return out
}

// TestAgentsRefused: what is wrong with the second campaign, or with claims that need it, is
// reported with its place and cure.
func TestAgentsRefused(t *testing.T) {
	for name, x := range map[string]struct{ in, old, new, want string }{
		"no kubernetes.yaml": {"no file", "", "",
			`mine/claims.yaml:16:14: claims[1].testbed: the folder has no kubernetes.yaml, which measures claims with testbed kubernetes; add a campaign on clusters, or leave testbed out`},
		"another testbed": {"claims", "testbed: kubernetes", "testbed: lab", `claims[1].testbed: unknown value "lab"`},
		"not yet either": {"claims", "    metric: throughput_bits_per_second\n    left: {network: cilium/native}\n    relation: greater\n    right: {network: flannel/vxlan}\n", "    not_yet: why\n",
			`claims[1].testbed: testbed says where a claim is measured, and not_yet that it is not`},
		"a selector of several cells": {"clusters", "[1472]", "[64, 1472]",
			`claims[1].left: several cells of kubernetes.yaml are meant by one selector; it does not name message_bytes (1472, 64)`},
		"a host of either cluster": {"claims", "left: {network: cilium/native}", "left: {network: host}",
			`several cells of kubernetes.yaml are meant by one selector; it does not name cluster (cilium, flannel)`},
		"a network of no cluster": {"claims", "left: {network: cilium/native}", "left: {network: bridge}",
			`claims[1].left: no cell of kubernetes.yaml is meant by link: unshaped, mtu: 1500, network: bridge, path: pod-to-pod, placement: inter-host, profile: default_settings, workload: tcp_stream; add the cell to kubernetes.yaml`},
		"another MTU": {"claims", "right: {network: flannel/vxlan}", "right: {network: flannel/vxlan, mtu: 9000}", `kubernetes.yaml has no cell flannel/vxlan`},
		"a value that nothing uses": {"clusters", "workloads: [", "workloads: [{name: udp_stream, message_bytes: [1400]}, ",
			`kubernetes.yaml: no claim, table or baseline uses a cell with message bytes 1400, workload udp_stream`},
		"a cluster that nothing uses": {"clusters", "workloads:", "  - {name: bridge, context: bridge, network: bridge}\nworkloads:", `uses a cell with cluster bridge, network bridge`},
		"no network":                  {"clusters", ", network: cilium/native", "", `mine/kubernetes.yaml:5:5: clusters[1]: missing key "network"; add the network that it must have`},
		"no clusters":                 {"clusters", "clusters:\n  - {name: flannel, context: flannel, network: flannel/vxlan}\n  - {name: cilium, context: cilium, network: cilium/native}\n", "", `missing key "clusters"`},
		"a file":                      {"clusters", "context: cilium,", "kubeconfig: ./a,", `clusters[1].kubeconfig: a study cannot name a file of its reader's machine`},
		"in the lab":                  {"whole", "", goodCampaign, `kubernetes.yaml is for clusters, and this campaign is for the testbed lab; write testbed: kubernetes`},
		"not a campaign":              {"clusters", "testbed", "testbet", `mine/kubernetes.yaml:2:1: unknown key "testbet"`},
		"what cannot be shown":        {"claims", "relation: greater\n    right: {network: flannel/vxlan}", "relation: value_within\n    range: [0, null]\n    counts_as: all", `no records contradict it`},
	} {
		t.Run(name, func(t *testing.T) {
			claims, clusters := agentsClaims, agentsCampaign
			switch x.in {
			case "claims":
				claims = strings.Replace(claims, x.old, x.new, 1)
			case "clusters":
				clusters = strings.Replace(clusters, x.old, x.new, 1)
			case "whole":
				clusters = x.new
			case "no file":
				clusters = ""
			}
			_, err := Load(agentsFolder(claims, clusters), "mine", program(t))
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v\nwant: %s", err, x.want)
			}
		})
	}
}

// TestConditionsOfClusters: a lab's Kubernetes has the lab's congestion control, other clusters
// have theirs. Claims that name no conditions mean the cells of either.
func TestConditionsOfClusters(t *testing.T) {
	p := loadAgents(t)
	c, err := campaign.Parse("kubernetes.yaml", p.Kubernetes, program(t).Names)
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range []campaign.Campaign{c, c.InLabs(program(t).Names)} {
		m := &made{env: result.Environment{Testbed: campaign.Kubernetes}}
		algorithm := asked.Workloads[0].Values["congestion_control"][0].(string)
		for cluster, network := range map[string]string{"flannel": "flannel/vxlan", "cilium": "cilium/native"} {
			for _, n := range []string{network, "host"} {
				cell := clustered(cluster, n)
				cell.CongestionControl, cell.CPUs = algorithm, "free"
				m.add(cell, throughput, around(map[string]float64{"host": 9e9, "cilium/native": 6e9, "flannel/vxlan": 3e9}[n])...)
			}
		}
		r := m.results()
		r.CutOfAgents = true // all that it is about is recorded
		for _, v := range Verdicts(p, r)[1:] {
			if v.Outcome != Reproduced || len(v.Missing) > 0 {
				t.Errorf("%s with %s: %s, %v", v.Claim.ID, algorithm, v.Outcome, v.Missing)
			}
		}
	}
}

// onTestbed are results in which every network of the two campaigns has a value.
func onTestbed(testbed string) *Results {
	m := &made{env: result.Environment{Testbed: testbed, Version: "v-" + testbed, Host: result.Host{Kernel: "6.18"}, Started: time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)}}
	if testbed == campaign.Kubernetes {
		m.env.Clusters = map[string]result.ClusterFacts{"flannel": {Network: "flannel/vxlan", NetworkVersion: "0.27", Kubernetes: "v1.34", Nodes: map[string]result.NodeFacts{"a": {}, "b": {}}}}
		for cluster, network := range map[string]string{"flannel": "flannel/vxlan", "cilium": "cilium/native"} {
			m.add(clustered(cluster, network), throughput, around(map[string]float64{"cilium/native": 6e9, "flannel/vxlan": 3e9}[network])...)
			m.add(clustered(cluster, "host"), throughput, around(9e9)...)
		}
	} else {
		for network, v := range map[string]float64{"bridge": 2e9, "host": 1e9, "cilium/native": 1e9, "flannel/vxlan": 5e9} {
			m.add(cellOf(network, func(c *result.Cell) { c.Link = "unshaped" }), throughput, around(v)...)
		}
	}
	return m.results()
}

// TestJudgedWhereAgentsAre: claims about agents are judged on records of a Kubernetes alone, and
// all others on the first records.
func TestJudgedWhereAgentsAre(t *testing.T) {
	p := loadAgents(t)
	lab, cluster := onTestbed(campaign.Lab), onTestbed(campaign.Kubernetes)
	cluster.Untaken = map[string][]string{"other": {"a setting"}}
	for name, x := range map[string]struct {
		results []*Results
		want    [3]Outcome // of first, agents, bare
		agents  bool
	}{
		"both":            {[]*Results{lab, cluster}, [3]Outcome{Reproduced, Reproduced, Reproduced}, true},
		"only the lab":    {[]*Results{lab}, [3]Outcome{Reproduced, NotMeasurable, NotMeasurable}, false},
		"only a cluster":  {[]*Results{cluster}, [3]Outcome{NotMeasurable, Reproduced, Reproduced}, true},
		"hosts":           {[]*Results{onTestbed(campaign.Hosts)}, [3]Outcome{Reproduced, NotMeasurable, NotMeasurable}, false},
		"no environment":  {[]*Results{{Analysis: lab.Analysis, Collector: lab.Collector, Known: lab.Known}}, [3]Outcome{Reproduced, NotMeasurable, NotMeasurable}, false},
		"a part of a lab": {[]*Results{cutOf(lab)}, [3]Outcome{Reproduced, NotMeasurable, NotMeasurable}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := Reproduce(p, x.results...)
			for i, v := range r.Verdicts {
				if v.Outcome != x.want[i] {
					t.Errorf("%s: %s, want %s: %v", v.Claim.ID, v.Outcome, x.want[i], v.Missing)
				}
				want := "unsupported here: needs the networks' own agents: cnibench reproduce mine --testbed kubernetes"
				if i > 0 && v.Outcome == NotMeasurable && (len(v.Missing) != 1 || v.Missing[0].Why != want) {
					t.Errorf("%s: %v", v.Claim.ID, v.Missing)
				}
			}
			if (r.Agents != nil) != x.agents {
				t.Fatalf("%+v", r.Agents)
			}
			if !x.agents {
				return
			}
			a := *r.Agents
			if !slices.Equal(a.Claims, []string{"agents", "bare"}) || a.Recorded != (Recording{"2026-11-28", "v-kubernetes", "6.18"}) || a.Blocks != 5 || a.Clusters["flannel"] != "flannel/vxlan 0.27 on Kubernetes v1.34, 2 nodes" {
				t.Errorf("%+v", a)
			}
			if twice := len(x.results) > 1; (len(a.Untaken) > 0) != twice || (len(r.Untaken) > 0) == twice {
				t.Errorf("settings %v, and of agents %v", r.Untaken, a.Untaken)
			}
			if r.Recorded.Version != "v-"+x.results[0].Environment.Testbed {
				t.Errorf("%+v", r.Recorded)
			}
		})
	}
}

func cutOf(r *Results) *Results {
	cut := *r
	cut.Cut = true
	return &cut
}

// TestCutOfAgents: what a time budget left out of one campaign says nothing about the other.
func TestCutOfAgents(t *testing.T) {
	p := loadAgents(t)
	m := &made{env: result.Environment{Testbed: campaign.Kubernetes}}
	r := m.add(clustered("flannel", "flannel/vxlan"), throughput, around(1e9)...).results()
	r.CutOfAgents = true
	r.Known.Networks = append(r.Known.Networks, "bridge")
	for i, want := range []Outcome{NotMeasurable, NotMeasured, NotMeasured} {
		if v := Verdicts(p, r)[i]; v.Outcome != want {
			t.Errorf("%s: %s, want %s: %v", v.Claim.ID, v.Outcome, want, v.Missing)
		}
	}
	// The names of the campaign's networks are known, which no lab need have.
	r.CutOfAgents = false
	for _, m := range Verdicts(p, r)[1].Missing {
		if !strings.Contains(m.Why, "add it to the campaign") {
			t.Errorf("%+v", m)
		}
	}
}

// TestProspectsOfAgents: a lab measures no claim about agents, and says where they are measured.
// A budget spends nothing on them.
func TestProspectsOfAgents(t *testing.T) {
	p := loadAgents(t)
	all := p.Prospects(second())
	if all[0].Why != "" || len(all[0].Cells) != 2 {
		t.Errorf("%+v", all[0])
	}
	for _, x := range all[1:] {
		if x.Why != "needs the networks' own agents: cnibench reproduce mine --testbed kubernetes" || x.Part || len(x.Cells) > 0 {
			t.Errorf("%+v", x)
		}
	}
	b := p.Budget(time.Hour, second(), dataset.Options{})
	m := (&made{}).add(p.Used[0], throughput, 1e9, 2e9, 3e9)
	m.samples[0].Warnings = []string{"profile default_settings: nothing took effect"}
	for _, samples := range [][]result.Sample{nil, m.samples} {
		if cells := b.Next(samples).Cells(); slices.ContainsFunc(cells, func(c result.Cell) bool { return c.Cluster != "" }) {
			t.Errorf("%v", cells)
		}
	}
	part, _ := p.OfAgents()
	for _, x := range part.Prospects(second()) {
		if x.Why != "" || len(x.Cells) == 0 {
			t.Errorf("%+v", x)
		}
	}
}

// TestOpenOfAgents: cells of undecided claims stay open, though clusters have other conditions
// than were planned.
func TestOpenOfAgents(t *testing.T) {
	p := loadAgents(t)
	part, _ := p.OfAgents()
	cell := func(cluster, network string) result.Cell {
		c := clustered(cluster, network)
		c.CongestionControl, c.CPUs = "cubic", "free"
		return c
	}
	flannel, cilium := cell("flannel", "flannel/vxlan"), cell("cilium", "cilium/native")
	m := (&made{}).add(flannel, throughput, 1e9, 1e9, 1e9).add(cilium, throughput, 1.3e9, 0.9e9, 1.5e9).
		add(cell("flannel", "host"), throughput, 9e9, 9.1e9, 9.2e9).add(cell("cilium", "host"), throughput, 9e9, 9.1e9, 9.2e9)
	done := part.Open(dataset.Options{})(m.samples)
	if done[flannel] || done[cilium] || len(done) != 4 {
		t.Errorf("%v", done)
	}
	m = (&made{}).add(flannel, throughput, around(1e9)...).add(cilium, throughput, around(4e9)...).
		add(cell("flannel", "host"), throughput, around(9e9)...).add(cell("cilium", "host"), throughput, around(9e9)...)
	for c, d := range part.Open(dataset.Options{})(m.samples) {
		if !d {
			t.Errorf("%s is open", name(c))
		}
	}
}
