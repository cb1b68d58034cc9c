package campaign_test

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/network/ladder"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/wire"
	"github.com/cnibench/cnibench/internal/workload"
)

// known are the real lists, as the command line gathers them.
func known() campaign.Known {
	k := campaign.Known{Testbeds: []string{"lab", "hosts", campaign.Kubernetes}, Profiles: profile.Names(), Probes: probe.Names()}
	for _, n := range catalog.Choices() {
		k.Networks = append(k.Networks, n.Name)
		if n.Policy {
			k.Enforcing = append(k.Enforcing, n.Name)
		}
	}
	for _, name := range ladder.Names() {
		k.Ladders = append(k.Ladders, campaign.Ladder{Network: name})
	}
	for _, p := range catalog.ServiceProxies() {
		k.ServiceProxies = append(k.ServiceProxies, p.Name)
	}
	for _, l := range wire.Links() {
		k.Links = append(k.Links, l.Name)
	}
	for _, w := range workload.List() {
		k.Workloads = append(k.Workloads, w.Spec())
	}
	return k
}

func TestExamples(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(paths) < 3 {
		t.Fatalf("%d examples, %v", len(paths), err)
	}
	for _, path := range paths {
		c, err := campaign.Load(path, known())
		if err != nil {
			t.Error(err)
			continue
		}
		if notes := c.Notes(); len(notes) > 0 {
			t.Errorf("%s: %q", path, notes)
		}
		for _, cell := range plan.New(c, 1).Cells {
			if cell.Workload == workload.PodSetupName {
				continue // the testbed does it: there is no program
			}
			if err := drive(c.Sampling, cell); err != nil {
				t.Errorf("%s: %s: %v", path, cell.Traffic(), err)
			}
		}
	}
}

// TestExamplesAreWhole: two examples name all that a lab can measure. With -update they
// get what they lack.
func TestExamplesAreWhole(t *testing.T) {
	var networks, workloads []string
	for _, n := range catalog.List() {
		networks = append(networks, n.Name)
	}
	for _, w := range workload.List() {
		// One sends no traffic, and the other only to services.
		if name := w.Spec().Name; name != workload.PodSetupName && name != result.ServiceUpdateName {
			workloads = append(workloads, name)
		}
	}
	for _, e := range []struct {
		path, before string // what is missing is written before this line
		all          []string
		line         string
		named        func(campaign.Campaign) []string
	}{
		{"../../examples/datapaths.yaml", "links: ", networks, "  - %s", func(c campaign.Campaign) (names []string) {
			for _, n := range c.Networks {
				names = append(names, n.Name)
			}
			return names
		}},
		{"../../examples/tools.yaml", "# Tools take whole seconds", workloads, "  - {name: %s}", func(c campaign.Campaign) (names []string) {
			for _, w := range c.Workloads {
				names = append(names, w.Name)
			}
			return names
		}},
	} {
		c, err := campaign.Load(e.path, known())
		if err != nil {
			t.Fatal(err)
		}
		missing := slices.DeleteFunc(slices.Clone(e.all), func(name string) bool { return slices.Contains(e.named(c), name) })
		if len(missing) == 0 {
			continue
		}
		if flag.Lookup("update").Value.String() != "true" {
			t.Errorf("%s leaves out %s; run go test ./internal/campaign -update", e.path, strings.Join(missing, ", "))
			continue
		}
		text, err := os.ReadFile(e.path)
		if err != nil {
			t.Fatal(err)
		}
		head, tail, found := strings.Cut(string(text), "\n"+e.before)
		if !found {
			t.Fatalf("%s has no line %q", e.path, e.before)
		}
		for _, name := range missing {
			head += fmt.Sprintf("\n"+e.line, name)
		}
		if err := os.WriteFile(e.path, []byte(head+"\n"+e.before+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// drive asks the cell's workload for both its programs: it may refuse what a
// campaign cannot know, such as a size that is too small for a tool's header.
func drive(s campaign.Sampling, cell result.Cell) error {
	w, err := workload.Find(cell.Workload)
	if err != nil {
		return err
	}
	p := workload.Params{Cell: cell, Warmup: s.Warmup(), Window: s.Window(), Token: strings.Repeat("00", 16)}
	if many, is := w.(workload.ManyEnds); is {
		_, err := many.Rank(p, cell.Ranks-1, 0)
		return err
	}
	if mpi, is := w.(workload.MPI); is {
		_, err := mpi.Launch(p, []workload.MPIHost{{Address: netip.MustParseAddr("198.18.0.1")}})
		return err
	}
	_, serveErr := w.Serve(p)
	_, driveErr := w.Drive(p, netip.MustParseAddrPort("198.18.0.1:5201"))
	return errors.Join(serveErr, driveErr)
}

// The schema and the manual are those of the lists of today.
func TestDocsAreFresh(t *testing.T) {
	schema, err := campaign.Schema(known())
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for path, got := range map[string]string{
		"../../docs/campaign.schema.json": string(schema),
		"../../docs/campaign.md":          campaign.Manual(known(), string(example)),
	} {
		if flag.Lookup("update").Value.String() == "true" {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s is stale; run go test ./internal/campaign -update: %s", path, diff)
		}
	}
}
