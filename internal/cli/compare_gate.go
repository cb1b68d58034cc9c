package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/comparison"
	"github.com/cnibench/cnibench/internal/workload"
)

// The values of compare --fail-on and --baseline.
const (
	failWorse     = "worse"
	failBroken    = "broken"
	failUndecided = "undecided"

	baseResult   = "result"
	baseLatestOf = "latest-of"
)

// failStatus turns the list of --fail-on into the exit status of a comparison. A
// regression comes before what is undecided.
func failStatus(failOn []string) (func(comparison.Comparison) int, error) {
	for _, word := range failOn {
		if err := oneOf("fail-on", word, []string{failWorse, failBroken, failUndecided}); err != nil {
			return nil, err
		}
	}
	has := func(c comparison.Comparison, word string, v comparison.Verdict) bool {
		return slices.Contains(failOn, word) && slices.ContainsFunc(c.Cells, func(x comparison.Cell) bool { return x.Verdict == v })
	}
	return func(c comparison.Comparison) int {
		switch {
		case has(c, failWorse, comparison.Worse), has(c, failBroken, comparison.Broken):
			return exitRegression
		case has(c, failUndecided, comparison.CannotTell), slices.Contains(failOn, failUndecided) && len(c.Cells) == 0:
			return exitUndecided
		}
		return exitOK
	}, nil
}

// baseOf is the result directory to compare with: dir itself, or the newest complete
// result in it. It prints which one was chosen.
func baseOf(baseline, dir, newDir string, stderr io.Writer) (string, error) {
	if err := oneOf("baseline", baseline, []string{baseResult, baseLatestOf}); err != nil {
		return "", err
	}
	if baseline == baseResult {
		return dir, nil
	}
	base, err := latestOf(dir, newDir)
	if err == nil {
		fmt.Fprintf(stderr, "base: %s\n", base)
	}
	return base, err
}

// latestOf is the result directory in dir that finished last, other than newDir. Links
// (results/latest), interrupted runs and results that do not load are passed over.
func latestOf(dir, newDir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("--baseline latest-of: %w", err)
	}
	newInfo, err := os.Stat(newDir)
	if err != nil {
		return "", err
	}
	var newest time.Time
	best := ""
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil || !info.IsDir() || os.SameFile(info, newInfo) {
			continue
		}
		if rec, err := result.Describe(path); err == nil && rec.Complete() && rec.Environment.Finished.After(newest) {
			best, newest = path, rec.Environment.Finished
		}
	}
	if best == "" {
		return "", fmt.Errorf("--baseline latest-of: %s has no complete result other than %s; measure one with cnibench run --out %s", dir, newDir, filepath.Join(dir, "NAME"))
	}
	return best, nil
}

// toolsOf names the programs that make a cell's traffic, none where cnibench does.
func toolsOf(cell result.Cell) []string {
	w, err := workload.Find(cell.Workload)
	if err != nil {
		return nil
	}
	var names []string
	for _, t := range w.Spec().Needs {
		names = append(names, t.Name)
	}
	return names
}

// allTools names the programs of every workload.
func allTools() []string {
	var names []string
	for _, w := range workload.List() {
		for _, t := range w.Spec().Needs {
			names = append(names, t.Name)
		}
	}
	return names
}

// pluginsOf names the CNI plugins of a network of the lab. Networks of a campaign's own
// conflists are not known.
func pluginsOf(name string) ([]string, bool) {
	for _, n := range networks() {
		if n.Name == name {
			return n.Plugins, true
		}
	}
	return nil, false
}
