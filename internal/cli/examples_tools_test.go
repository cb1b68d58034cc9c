package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/workload"
)

// TestToolsExample runs examples/tools.yaml as a user would: every published
// tool and every native workload, over the bare network and from pod to pod.
func TestToolsExample(t *testing.T) {
	t.Parallel()
	labtest.Turn(t, labtest.Studies)
	labtest.Root(t)
	needAllTools(t)
	s := newSurvivor(t)
	text, err := os.ReadFile("../../examples/tools.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// Fewer and shorter slices and windows of what is native; tools take whole seconds.
	const sampling = "sampling: {"
	if strings.Count(string(text), sampling) != 1 {
		t.Fatalf("the example has not one %q", sampling)
	}
	s.write(strings.Replace(string(text), sampling, sampling+"slices: 10, explain_seconds: 0.1, ", 1))
	before := labtest.TakeTrace(t, s.ours)
	begin := time.Now()
	run := s.run()
	<-run.ended
	t.Logf("it took %v", time.Since(begin).Round(time.Second))
	if run.err != nil {
		t.Fatalf("%v: %s", run.err, run.Stderr())
	}
	s.leavesNothing(before)
	s.finished(nil)
	rec, err := result.Read(s.out)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, sample := range measuredOrFailed(t, rec.Samples) {
		seen[sample.Cell.Network+" "+sample.Cell.Path+" "+sample.Cell.Workload+" "+sample.Cell.Test] = true
		s.checkRaw(sample)
	}
	for _, at := range []string{"host host-to-host ", "bridge pod-to-pod "} {
		for _, w := range workload.List() {
			if name := w.Spec().Name; name == workload.PodSetupName || name == result.ServiceUpdateName {
				continue // one sends no traffic, and host has no pods to add; the other needs a service
			}
			for _, test := range orNone(w.Spec().Tests) {
				if unpackaged(w.Spec(), test) {
					continue
				}
				if what := at + w.Spec().Name + " " + test; !seen[what] {
					t.Errorf("the example has no %s", what)
				}
			}
		}
	}
	s.checkCrossChecks()
}

// unpackaged reports whether a test needs a program that no package has: nobody needs to
// have it.
func unpackaged(s workload.Spec, test string) bool {
	return slices.ContainsFunc(s.Needs, func(t workload.Tool) bool { return t.NeededBy(test) && t.Package == "" })
}

// needAllTools skips the test where a published tool is missing that an installation can
// have without building it from a stranger's source.
func needAllTools(t *testing.T) {
	t.Helper()
	for _, w := range workload.List() {
		for _, tool := range w.Spec().Needs {
			if tool.Package != "" {
				labtest.Tool(t, tool.Name, tool.Package)
			}
		}
	}
}

func orNone(tests []string) []string {
	if len(tests) == 0 {
		return []string{""}
	}
	return tests
}

// measuredOrFailed gives the measured sample of every slot; a slot whose
// retries failed too is an error, with all reasons.
func measuredOrFailed(t *testing.T, all []result.Sample) []result.Sample {
	t.Helper()
	var out []result.Sample
	reasons := map[string][]string{}
	for _, s := range all {
		if s.Status == result.StatusOK {
			out = append(out, s)
			continue
		}
		if w, err := workload.Find(s.Cell.Workload); err == nil && s.Status == result.StatusUnsupported && unpackaged(w.Spec(), s.Cell.Test) {
			continue
		}
		reasons[s.ID] = append(reasons[s.ID], s.Status+": "+s.Reason)
		t.Logf("%s %s %s, attempt %d: %s: %s", s.ID, s.Cell.Network, s.Cell.Traffic(), s.Attempt, s.Status, s.Reason)
	}
	for id, why := range reasons {
		if !slices.ContainsFunc(out, func(s result.Sample) bool { return s.ID == id }) {
			t.Errorf("%s was not measured: %s", id, strings.Join(why, "; "))
		}
	}
	return out
}

// checkRaw looks for what a published tool's sample keeps: command line and
// output of both ends, and the versions.
func (s *survivor) checkRaw(sample result.Sample) {
	s.t.Helper()
	w, err := workload.Find(sample.Cell.Workload)
	if err != nil {
		s.t.Fatal(err)
	}
	needs := w.Spec().Needs
	if len(needs) == 0 {
		if said, _ := filepath.Glob(filepath.Join(s.out, "raw", sample.ID, "*.argv.json")); len(said) > 0 {
			s.t.Errorf("%s: a native sample has %v", sample.ID, said)
		}
		return
	}
	said := 0
	ends := []string{"client", "server"}
	if w.Spec().ManyEnds {
		ends = ends[:1] // the launcher
	}
	for _, end := range ends {
		var argv []string
		data, err := os.ReadFile(filepath.Join(s.out, sample.Raw, end+".argv.json"))
		if err == nil {
			err = json.Unmarshal(data, &argv)
		}
		known := func(t workload.Tool) bool { return len(argv) > 0 && t.Name == argv[0] }
		if err != nil || !slices.ContainsFunc(needs, known) || strings.Contains(strings.Join(argv, " "), "{") {
			s.t.Errorf("%s %s: argv %q, %v", sample.ID, end, argv, err)
			continue
		}
		if v := sample.Tools[argv[0]]; v == "" {
			s.t.Errorf("%s %s: no version of %s in %v", sample.ID, end, argv[0], sample.Tools)
		}
		for _, stream := range []string{".stdout", ".stderr"} {
			text, err := os.ReadFile(filepath.Join(s.out, sample.Raw, end+stream))
			if err != nil {
				s.t.Errorf("%s: %v", sample.ID, err)
			}
			said += len(text)
		}
	}
	if said == 0 {
		s.t.Errorf("%s: neither end said anything", sample.ID)
	}
}

// analysis is that of the run, as its report has it.
func (s *survivor) analysis() stat.Analysis {
	s.t.Helper()
	report := s.start(s.command("report", s.out, "--format", "json"))
	if status := report.wait(s.t); status != 0 {
		s.t.Fatalf("report: status %d: %s", status, report.Stderr())
	}
	var doc struct{ Analysis stat.Analysis }
	if err := json.Unmarshal(report.stdout.Bytes(), &doc); err != nil {
		s.t.Fatal(err)
	}
	return doc.Analysis
}

// checkCrossChecks reads the report of the run: each pair of the example is in
// it, for both networks, with its ratio.
func (s *survivor) checkCrossChecks() {
	s.t.Helper()
	analysis := s.analysis()
	got := map[string]bool{}
	for _, x := range analysis.CrossChecks {
		got[x.Native.Network+" "+x.Native.Workload+" "+x.Classic.Workload+" "+x.Classic.Test+" "+x.Classic.Protocol] = true
		if x.Ratio == nil || x.Ratio.N != 2 || x.Ratio.Low == nil {
			s.t.Errorf("no ratio with an interval: %+v", x)
			continue
		}
		s.t.Logf("%s: %s / %s: %.2f", x.Native.Network, x.Native.Traffic(), x.Classic.Traffic(), x.Ratio.Value)
	}
	for _, k := range stat.Correspondences() {
		if k.Tool == "sockperf" && k.Test == "throughput" && k.Protocol == "tcp" {
			continue // iperf3 and netperf are TCP stream enough for the example
		}
		for _, network := range []string{"host ", "bridge "} {
			if what := network + k.Native + " " + k.Tool + " " + k.Test + " " + k.Protocol; !got[what] {
				s.t.Errorf("the report does not hold %s against each other", what)
			}
		}
	}
	trips := 0
	for _, r := range analysis.RoundTrips {
		if w, err := workload.Find(r.Cell.Workload); err == nil && len(w.Spec().Needs) == 0 {
			trips++
		}
	}
	if trips != 2*4 {
		s.t.Errorf("%d checks of rate × round trip, want one for each of the four native workloads on both networks", trips)
	}
	page, err := os.ReadFile(filepath.Join(s.out, result.ReportFile))
	if err != nil || !strings.Contains(string(page), "id=\"cross-check\"") {
		s.t.Errorf("the HTML report has no cross-checks (%v)", err)
	}
}
