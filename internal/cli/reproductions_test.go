package cli_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/cli"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/internal/report/reproduction"
	"github.com/cnibench/cnibench/papers"
)

var (
	update   = flag.Bool("update", false, "write docs/reproductions.md again")
	keepRuns = flag.String("record", "", "keep the runs in this folder, which has a folder for each paper that was measured again")
)

const (
	recordedRuns     = "testdata/reproductions"
	reproductionsDoc = "../../docs/reproductions.md"
	// onKubernetes follows a paper's id in the name of the folder with its run on a Kubernetes.
	onKubernetes = "-kubernetes"
)

// TestReproductions: docs/reproductions.md says of each claim what the recorded
// runs say. What it says of networks and factors that could not be measured
// changes with what cnibench has; -update writes it again.
func TestReproductions(t *testing.T) {
	labtest.Slow(t)
	names, err := paper.List(papers.FS)
	if err != nil {
		t.Fatal(err)
	}
	if *keepRuns != "" {
		for _, id := range names {
			for _, run := range []string{id, id + onKubernetes} {
				if from := filepath.Join(*keepRuns, run); isDir(from) { // others keep their runs
					keep(t, from, filepath.Join(recordedRuns, run))
				}
			}
		}
	}
	doc, rows := reproductionsHead, []string{}
	for _, id := range names {
		r := recordedReproduction(t, id)
		doc += studyText(r)
		for _, v := range r.Verdicts {
			rows = append(rows, verdictRow(v))
		}
	}
	if *update {
		if err := os.WriteFile(reproductionsDoc, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(reproductionsDoc)
	if err != nil {
		t.Fatal(err)
	}
	if i := bytes.IndexByte(have, 0x1b); i >= 0 {
		t.Errorf("%s:%d has an escape code of a terminal", reproductionsDoc, 1+bytes.Count(have[:i], []byte("\n")))
	}
	for _, row := range rows {
		if !strings.Contains(string(have), row) {
			t.Errorf("%s lacks %q: go test ./internal/cli -run Reproductions -update", reproductionsDoc, row)
		}
	}
}

// studyHead begins the part of a study.
func studyHead(p paper.Publication) string {
	return fmt.Sprintf("\n## %s\n\n%s: *%s*. %s, %d.\n\n> %s\n\n", p.ID, strings.Join(p.Authors, ", "), p.Title, p.PublishedIn, p.Year, p.Question)
}

// recordedReproduction compares a recorded run with its paper, and that on a Kubernetes, if there
// is one.
func recordedReproduction(t *testing.T, id string) paper.Reproduction {
	t.Helper()
	argv := []string{"reproduce", id, "--json", "--from", unpacked(t, id)}
	if isDir(filepath.Join(recordedRuns, id+onKubernetes)) {
		argv = append(argv, "--from", unpacked(t, id+onKubernetes))
	}
	var stdout, stderr bytes.Buffer
	if status := cli.Main(argv, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	var r paper.Reproduction
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// unpacked is the result directory of a recorded run.
func unpacked(t *testing.T, run string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), run)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(recordedRuns, run))); err != nil {
		t.Fatal(err)
	}
	packed, err := os.Open(filepath.Join(dir, "samples.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpack, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	records, err := io.ReadAll(unpack)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "samples.jsonl"), records, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// keep packs what claims and tables need of a run: no histograms, no series, no ranks, no
// output of tools.
func keep(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"campaign.yaml", "plan.json", "environment.json"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil && name == "environment.json" {
			text, err = without(text, "places")
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	records, err := os.ReadFile(filepath.Join(from, "samples.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	for line := range strings.Lines(string(records)) {
		text, err := without([]byte(line), "histogram", "series", "job")
		if err == nil {
			_, err = w.Write(append(text, '\n'))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "samples.jsonl.gz"), packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// without is a JSON object without some of its keys.
func without(text []byte, keys ...string) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	for _, k := range keys {
		delete(object, k)
	}
	return json.Marshal(object)
}

const reproductionsHead = `<!-- Made from recorded runs: go test ./internal/cli -run Reproductions -update -->
# What six studies say, measured again

Each study names the time of its records, the version of cnibench and the kernel. The part
of its campaign that fits into the given time ran once, on one virtual machine with 2 CPUs
on which nothing else was measured or built. All nodes were network namespaces of its one kernel. Both
ends of a sample shared one CPU, so each figure is the cost of the path; the ranks of parallel jobs were on both CPUs. Absolute values,
and everything that a NIC, a second machine or more CPUs contribute, are not reproduced;
the shapes may be. Several streams, in particular, share the same CPU here.

[How a claim is judged](adding-a-paper.md#how-it-is-judged) explains the verdicts. The
folders of [papers](../papers) have the claims, the published numbers and the campaigns,
with a list of each study's sentences and their claims.

Ours is left / right, or left minus right, with its 95 % interval. Of several pairs it is the
one that decides the verdict.
Findings and numbers count; questions, related work and settings are only shown.
`

// recordedWith is the command whose run is kept.
func recordedWith(id string) string {
	flags := map[string]string{
		"volpert2022": "4m", "lim2020": "15m", "spiderpool-v0.8": "8m", "infrabuilder2024": "40m", "dakic2024": "32m --allow-host-tuning", "qi2020": "34m",
	}
	return "cnibench reproduce " + id + " --for " + flags[id]
}

// studyText is a study's part of the document.
func studyText(r paper.Reproduction) string {
	var b strings.Builder
	p := r.Publication
	b.WriteString(studyHead(p))
	var counts []string
	for _, w := range paper.Outcomes() {
		counts = append(counts, fmt.Sprintf("%d %s", r.Count(w), w))
	}
	fmt.Fprintf(&b, "%d findings and numbers: %s. Up to %d blocks, recorded %s.\n\n", len(r.Counted()), strings.Join(counts, ", "), r.Blocks, reproduction.RecordedWords(r.Recorded))
	fmt.Fprintf(&b, "Measure it again: `%s`. ", recordedWith(p.ID))
	fmt.Fprintf(&b, "[Every sentence and its claim](../papers/%s/README.md).\n", p.ID)
	if r.Agents != nil {
		b.WriteString(agentsText(p.ID, *r.Agents))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Untaken)) {
		fmt.Fprintf(&b, "\nProfile %s did not take effect: %s.\n", name, escaped(strings.Join(r.Untaken[name], "; ")))
	}
	b.WriteString("\n| claim | verdict | ours | published | kind |\n|---|---|---|---|---|\n")
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "%s | %s | %s | %s | %s |\n", verdictRow(v), v.Outcome, escaped(reproduction.OursWords(v)), escaped(v.Claim.Published), v.Claim.Kind)
	}
	var known []string
	for _, v := range r.Verdicts {
		if v.Outcome == paper.Contradicted && v.Claim.Known != "" {
			known = append(known, fmt.Sprintf("- `%s`: %s\n", v.Claim.ID, v.Claim.Known))
		}
	}
	if len(known) > 0 {
		b.WriteString("\nWhat would explain the contradictions:\n\n" + strings.Join(known, ""))
	}
	return b.String()
}

// agentsText says which claims of a study were judged on a Kubernetes, when and where.
func agentsText(id string, a paper.Agents) string {
	a.Dir = "" // a temporary folder
	s := "\n" + reproduction.AgentsWords(a)
	for _, name := range slices.Sorted(maps.Keys(a.Clusters)) {
		s += fmt.Sprintf(" Cluster %s: %s.", name, escaped(a.Clusters[name]))
	}
	s += fmt.Sprintf(" Measure them again: `cnibench reproduce %s --testbed kubernetes`. The claims are `%s`.\n", id, strings.Join(a.Claims, "`, `"))
	for _, name := range slices.Sorted(maps.Keys(a.Untaken)) {
		s += fmt.Sprintf("\nOn the Kubernetes, profile %s did not take effect: %s.\n", name, escaped(strings.Join(a.Untaken[name], "; ")))
	}
	return s
}

// TestAgentsOnThePage: the page says what was judged on a Kubernetes, and nothing of one where
// nothing was.
func TestAgentsOnThePage(t *testing.T) {
	t.Parallel()
	r := paper.Reproduction{Publication: paper.Publication{ID: "mine"}}
	if text := studyText(r); strings.Contains(text, "Kubernetes") {
		t.Errorf("%s", text)
	}
	r.Agents = &paper.Agents{Claims: []string{"memory", "pods"}, Blocks: 5, Dir: "/tmp/x", Clusters: map[string]string{"flannel": "flannel/vxlan 0.27 on Kubernetes v1.34, 2 nodes"},
		Recorded: paper.Recording{Started: "2026-11-28", Version: "v1", Kernel: "6.18"}, Untaken: map[string][]string{"tuned": {"a setting"}}}
	text := studyText(r)
	for _, want := range []string{
		"\n2 claims about the networks' own agents were judged on a real Kubernetes. Its records have up to 5 blocks and were made 2026-11-28 by version v1 on kernel 6.18. ",
		"Cluster flannel: flannel/vxlan 0.27 on Kubernetes v1.34, 2 nodes.", "`cnibench reproduce mine --testbed kubernetes`", "`memory`, `pods`", "profile tuned did not take effect: a setting.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "/tmp/x") {
		t.Error("the page has the folder of a test")
	}
}

// verdictRow begins a claim's row. The verdict is in it, so that a test may look
// for both together.
func verdictRow(v paper.Verdict) string {
	mark := map[paper.Outcome]string{paper.Reproduced: "✓", paper.ReproducedInPart: "(✓)", paper.Contradicted: "✗", paper.Undecided: "?", paper.NotMeasured: "·", paper.NotMeasurable: "–"}[v.Outcome]
	return fmt.Sprintf("| %s `%s`", mark, v.Claim.ID)
}

// colours are what a tool writes to a terminal to colour its output.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// escaped is a text as a cell of a table in Markdown, without a terminal's colours.
func escaped(s string) string {
	s = colours.ReplaceAllString(s, "")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(s)
}
