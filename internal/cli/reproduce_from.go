package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/internal/report/reproduction"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// show compares recorded results with the paper, prints that and writes it into
// a folder, if there is one.
func (f reproduceFlags) show(p paper.Paper, from []string, into string, stdout, stderr io.Writer) error {
	all, err := recordedFrom(p, from)
	if err != nil {
		return usageError{err}
	}
	var results []*paper.Results
	for _, one := range all {
		results = append(results, one.results)
	}
	out := paper.Reproduce(p, results...)
	out.Dir, out.Version = all[0].dir, version()
	if out.Agents != nil {
		out.Agents.Dir = all[len(all)-1].dir
	}
	if into != "" {
		if err := writeReproduction(into, out, stderr); err != nil {
			return err
		}
	}
	return inFormat(stdout, f.run.format, func(w io.Writer, format string) error {
		return reproduction.Write(w, format, out, reportOptions(stdout))
	})
}

// recordedIn are the results of a directory.
type recordedIn struct {
	dir     string
	results *paper.Results
}

// recordedFrom reads result directories for claims. That of a Kubernetes comes last, because it
// judges the claims about agents alone where there is another.
func recordedFrom(p paper.Paper, dirs []string) ([]recordedIn, error) {
	var others, clusters []recordedIn
	for _, dir := range dirs {
		r, err := recordedResults(p, dir)
		if err != nil {
			return nil, err
		}
		if one := (recordedIn{dir, r}); r.OnKubernetes() {
			clusters = append(clusters, one)
		} else {
			others = append(others, one)
		}
	}
	for _, same := range [][]recordedIn{others, clusters} {
		if len(same) > 1 {
			return nil, fmt.Errorf("--from %s and --from %s judge the same claims (%s): give one directory of a lab or of hosts, and one of a Kubernetes", same[0].dir, same[1].dir, onTestbeds(same))
		}
	}
	if len(others) > 0 && len(clusters) > 0 && !p.HasClaimsOfAgents() {
		return nil, fmt.Errorf("--from %s was recorded on a Kubernetes, and no claim of %s needs the networks' own agents: give one of the directories alone", clusters[0].dir, p.ID)
	}
	return append(others, clusters...), nil
}

// onTestbeds says on which testbeds some results were recorded.
func onTestbeds(all []recordedIn) string {
	var names []string
	for _, one := range all {
		name := "unknown"
		if e := one.results.Environment; e != nil {
			name = e.Testbed
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return "testbed " + strings.Join(names, " and ")
}

// recordedResults reads a result directory for claims.
func recordedResults(p paper.Paper, dir string) (*paper.Results, error) {
	rec, c, err := describe(dir)
	if err != nil {
		return nil, err
	}
	collector := stat.NewCollector(analysisOptions(c, environmentOf(rec)))
	settings := paper.Untaken{}
	if _, err := result.Each(dir, func(s *result.Sample) {
		collector.Add(s)
		settings.Add(s)
	}); err != nil {
		return nil, err
	}
	return &paper.Results{Campaign: c, Environment: rec.Environment, Analysis: collector.Analyse(), Collector: collector, Known: known(),
		Cut:         c.Name == p.ID+quickSuffix || strings.HasPrefix(c.Name, p.ID+budgetMark),
		CutOfAgents: strings.HasPrefix(c.Name, p.ID+agentsMark+budgetMark), Untaken: settings.List()}, nil
}
