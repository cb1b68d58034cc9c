//go:build linux

package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/buildable"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/network/instructions"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/baremetal"
	"github.com/cnibench/cnibench/internal/testbed/lab/wire"
	"github.com/cnibench/cnibench/internal/testbed/labkubernetes"
)

// tuneTime is what changing a profile of a whole machine takes.
const tuneTime = baremetal.TuneTime

// asCNIPlugin runs the program as a CNI plugin where it was started as one.
func asCNIPlugin(program string, environ []string) (handled bool, status int) {
	return catalog.RunAsPlugin(program, environ)
}

// networks are those that campaigns may name.
func networks() []buildable.Network { return catalog.Names() }

// ladders are those of all networks that have steps.
func ladders() []buildable.Ladder { return catalog.LadderNames() }

// serviceProxies are those that campaigns may name.
func serviceProxies() []buildable.ServiceProxy { return catalog.ServiceProxyNames() }

// links are those that campaigns may name.
func links() []buildable.Link { return wire.LinkNames() }

// counted is how many instructions a network takes per packet or transaction, where that
// was counted.
func counted(name, workload, placement string) (float64, bool) {
	return instructions.Of(name, workload, placement)
}

func listNetworks(ctx context.Context) []listed {
	have := map[string]error{}
	rows := []listed{}
	for _, n := range catalog.List() {
		row := listed{Name: n.Name, Summary: n.Summary, Kind: n.Kind, Model: n.Model, Distance: n.Distance, Encapsulation: n.Encapsulation}
		row.need(n.Needs, have)
		if n.Kind != result.KindReal && slices.Contains(clusterNetworks(), n.Name) {
			row.RealForm = "--kubernetes --cni " + n.Name
		}
		if n.Datapath != nil && len(row.Missing) == 0 {
			var err error
			if row.Datapath, err = n.Datapath(ctx); err != nil {
				row.Missing = append(row.Missing, err.Error())
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// clusterNetworks are the names of the networks that a lab's Kubernetes can have.
func clusterNetworks() []string {
	all, _ := labkubernetes.CNIs() // an error names one that the catalogue lacks, which no build has
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	return names
}

func listServiceProxies() []listed {
	have := map[string]error{}
	rows := []listed{}
	for _, p := range catalog.ServiceProxies() {
		row := listed{Name: p.Name, Summary: p.Summary, Model: p.Model}
		row.need(p.Needs, have)
		rows = append(rows, row)
	}
	return rows
}

// need reports which of the features are available; have keeps the answers, so that
// each is tried once.
func (r *listed) need(features []netns.Feature, have map[string]error) {
	for _, f := range features {
		r.Needs = append(r.Needs, f.Name)
		err, tried := have[f.Name]
		if !tried {
			err = f.Probe()
			have[f.Name] = err
		}
		if err != nil {
			r.Missing = append(r.Missing, err.Error())
		}
	}
}

// untakenHere says which settings of a profile would not take effect in a lab on this
// machine; "" where all do, or where it cannot be tried.
func untakenHere(name string, allowTuning bool) string {
	p, err := profile.Find(name)
	if err != nil {
		return ""
	}
	if p.Tuned != "" && !allowTuning {
		return fmt.Sprintf("profile %s changes the whole machine: allow it with %s", name, profile.AllowFlag)
	}
	var not []string
	if p.Tuned != "" {
		not = profile.KnobsMissing(os.DirFS("/"), p.Tuned)
	}
	err = netns.Try("eth0", func(ns netns.NS) error {
		for _, s := range profile.Apply(ns, "eth0", p, false) {
			wide := strings.Contains(s.Reason, profile.AllowFlag)
			if s.Reason != "" && !(wide && allowTuning) && s.Name != "tuned" {
				not = append(not, s.Name+": "+s.Reason)
			}
		}
		return nil
	})
	if err != nil || len(not) == 0 {
		return ""
	}
	return "profile " + name + " would not take effect: " + strings.Join(not, "; ")
}
