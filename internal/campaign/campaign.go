// Package campaign is the YAML that a person writes: strictly parsed, every
// error with its line and column.
//
// One table (keys.go) says what each key takes. The parser, the JSON Schema
// for editors and the manual (docs/campaign.md) are all made from it.
package campaign

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// Campaign is one campaign file with every default filled in, so that nobody
// after the parser needs to know one.
type Campaign struct {
	Name    string `json:"name"`
	Testbed string `json:"testbed"`
	// Clusters are those of the testbed kubernetes; none: the current context.
	Clusters []Cluster `json:"clusters,omitempty"`
	// Pairs says which pairs of a cluster's nodes are measured: AllPairs,
	// PairsAcrossZones, or "" for one pair.
	Pairs    string    `json:"pairs,omitempty"`
	Networks []Network `json:"networks"`
	// Ladders are networks whose steps up from the host are measured beside them:
	// the parser has added them to Networks.
	Ladders   []string   `json:"ladders,omitempty"`
	Links     []string   `json:"links"`
	Profiles  []string   `json:"profiles"`
	Paths     []Path     `json:"paths"`
	Workloads []Workload `json:"workloads"`
	MTU       []int      `json:"mtu"`
	Families  []string   `json:"families"`
	// Services and ServiceProxies are crossed for paths to services, Policies for
	// networks that enforce policies.
	Services       []int    `json:"services"`
	ServiceProxies []string `json:"service_proxies"`
	Policies       []int    `json:"policies"`
	// Encryption is crossed for paths between nodes, on all networks but the bare one.
	Encryption []string `json:"encryption"`
	Probes     []string `json:"probes"`
	Sampling   Sampling `json:"sampling"`
}

// Network is a network's name, or a mapping with a conflist of the user's own.
// A conflist may differ per node: Conflists[i] is that of node i+1.
type Network struct {
	Name      string   `json:"name"`
	Conflist  string   `json:"conflist,omitempty"`
	Conflists []string `json:"conflists,omitempty"`
	// Contents is what the parser read from Conflist (one element) or
	// Conflists (one for each node); nil for a network that is built in.
	Contents [][]byte `json:"-"`
	// Enforces reports that the network enforces policies.
	Enforces bool `json:"-"`
}

// Path is from where to where.
type Path struct {
	From      string `json:"from"`      // pod, host
	To        string `json:"to"`        // pod, host, cluster-ip, node-port, headless
	Placement string `json:"placement"` // intra-host, inter-host
}

// String is the path in the words of a record: "pod-to-host".
func (p Path) String() string { return p.From + "-to-" + p.To }

// ToService reports whether the path leads to a service.
func (p Path) ToService() bool { return p.To == "cluster-ip" || p.To == "node-port" }

// Workload is a traffic and the values of its factors; every combination is a cell.
type Workload struct {
	Name string `json:"name"`
	// Values are those that the file lists, and the defaults.
	Values Values `json:"-"`
	// Asked names the conditions that the file itself sets: the others follow
	// the testbed.
	Asked Conditions `json:"-"`
}

// Values are factors by their names in records, each with its values in the factor's
// own type (result.Factor.Type). A factor without a value is absent.
type Values map[string][]any

// Factors yields each factor that the workload has values of, with these.
func (w Workload) Factors(yield func(f result.Factor, values []any) bool) {
	for _, f := range workloadFactors() {
		if values := w.Values[f.Name]; len(values) > 0 && !yield(f, values) {
			return
		}
	}
}

// set gives a factor its values. Copies of the workload keep theirs.
func (w *Workload) set(factor string, values ...any) {
	w.Values = maps.Clone(w.Values)
	if w.Values == nil {
		w.Values = Values{}
	}
	w.Values[factor] = values
}

// has reports whether a factor has a value.
func (w Workload) has(factor string) bool { return len(w.Values[factor]) > 0 }

// texts are the values of a factor of texts.
func (w Workload) texts(factor string) []string {
	var texts []string
	for _, v := range w.Values[factor] {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// numbers are the values of a factor of whole numbers.
func (w Workload) numbers(factor string) []int {
	var numbers []int
	for _, v := range w.Values[factor] {
		if n, ok := v.(int); ok {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// Conditions are factors of the experiment rather than of the network.
type Conditions struct{ CPUs, CongestionControl bool }

// Forward is the direction client to server, which a record leaves out.
const Forward = "forward"

// What ends the measuring of a cell, before the bounds on blocks and time do.
const (
	// UntilTarget: its interval is within the target.
	UntilTarget = "target"
	// UntilRanks: and its network differs significantly from every other, or is shown to be tied
	// with it.
	UntilRanks = "ranks"
)

// Sampling is how much is measured.
type Sampling struct {
	Seconds                 float64 `json:"seconds"`
	WarmupSeconds           float64 `json:"warmup_seconds"`
	MinBlocks               int     `json:"min_blocks"`
	MaxBlocks               int     `json:"max_blocks"`
	MaxSeconds              float64 `json:"max_seconds,omitempty"` // time budget of the whole; 0: none
	TargetRelativeHalfwidth float64 `json:"target_relative_halfwidth"`
	// Until is what ends the measuring of a cell, UntilTarget or UntilRanks.
	Until      string  `json:"until"`
	Confidence float64 `json:"confidence"`
	Retries    int     `json:"retries"`
	// SliceSeconds is the length of a slice of native traffic; 0: samples are one
	// long window each.
	SliceSeconds float64 `json:"slice_seconds"`
	// Slices is the number of slices of a sample; 0: as the noise of the machine in
	// the first block asks for.
	Slices int `json:"slices,omitempty"`
	// SlicedSeconds is how long the slices of a sample are together, at the least; 0: as long as
	// their number makes them.
	SlicedSeconds float64 `json:"sliced_seconds,omitempty"`
	// ExplainSeconds is the length of the windows in which probes are read beside
	// sliced samples, in every ExplainEvery-th block; 0: there are none.
	ExplainSeconds float64 `json:"explain_seconds"`
	ExplainEvery   int     `json:"explain_every"`
}

// Slice is the length of a slice as a duration; 0: samples are not sliced.
func (s Sampling) Slice() time.Duration {
	return time.Duration(s.SliceSeconds * float64(time.Second))
}

// Explain is the length of an explaining window as a duration.
func (s Sampling) Explain() time.Duration {
	return time.Duration(s.ExplainSeconds * float64(time.Second))
}

// Window and Warmup are the lengths of a sample as durations.
func (s Sampling) Window() time.Duration { return time.Duration(s.Seconds * float64(time.Second)) }

// Warmup is what is sent before the window and not counted.
func (s Sampling) Warmup() time.Duration {
	return time.Duration(s.WarmupSeconds * float64(time.Second))
}

// Known is every name that a campaign file may use. The command line fills it
// from the lists of networks, workloads, …, so that this package depends on none.
type Known struct {
	Networks  []string
	Links     []string
	Profiles  []string
	Workloads []workload.Spec
	Testbeds  []string
	Probes    []string
	// Enforcing are those of Networks that enforce policies.
	Enforcing      []string
	ServiceProxies []string
	Ladders        []Ladder
	// Recorded reports that the campaign is the copy in a result directory: its
	// conflists are somewhere else and are not read.
	Recorded bool
}

// Ladder is a network and all those on the way up to it, itself the last.
type Ladder struct {
	Network  string
	Networks []string
}

// ladderNames are the networks that have one.
func (k Known) ladderNames() []string {
	var names []string
	for _, l := range k.Ladders {
		names = append(names, l.Network)
	}
	return names
}

// workload looks a workload's description up by name.
func (k Known) workload(name string) (workload.Spec, bool) {
	for _, s := range k.Workloads {
		if s.Name == name {
			return s, true
		}
	}
	return workload.Spec{}, false
}

// Notes says what is no error and may still surprise, one line each, with a cure.
func (c Campaign) Notes() []string {
	var notes []string
	if !c.hasNetwork(result.HostNetwork) && !c.onlyAddsPods() {
		notes = append(notes, `no baseline: network "host" is not among the networks, so no efficiency is computed; add host to networks`)
	}
	if c.Switched() {
		notes = append(notes, "networks are switched by commands, so they are measured one after the other and not in turns; give each a cluster for that")
	}
	var without []string
	for _, n := range c.Networks {
		if !n.Enforces && n.Name != result.HostNetwork && n.Name != Detected {
			without = append(without, n.Name)
		}
	}
	if c.withPolicies() && len(without) > 0 {
		notes = append(notes, fmt.Sprintf("policies are for networks that enforce them: these do not, and are measured without: %s", strings.Join(without, ", ")))
	}
	return notes
}

// onlyAddsPods reports whether there is no workload that the bare network has too:
// it has no pods to add, and no services to change.
func (c Campaign) onlyAddsPods() bool {
	traffic := func(w Workload) bool { return w.Name != workload.PodSetupName && w.Name != result.ServiceUpdateName }
	return len(c.Workloads) > 0 && !slices.ContainsFunc(c.Workloads, traffic)
}

// withPolicies reports whether any number of policies but none is asked for.
func (c Campaign) withPolicies() bool {
	return slices.ContainsFunc(c.Policies, func(n int) bool { return n > 0 })
}

// withEncryption tells whether any encryption but none is asked for.
func (c Campaign) withEncryption() bool {
	return slices.ContainsFunc(c.Encryption, func(e string) bool { return e != result.EncryptionNone })
}

func (c Campaign) hasNetwork(name string) bool {
	for _, n := range c.Networks {
		if n.Name == name {
			return true
		}
	}
	return false
}
