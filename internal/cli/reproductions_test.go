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
	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/papers"
)

var (
	update   = flag.Bool("update", false, "write docs/reproductions.md again")
	keepRuns = flag.String("record", "", "keep the runs in this folder, one folder for each paper")
)

const (
	recordedRuns     = "testdata/reproductions"
	reproductionsDoc = "../../docs/reproductions.md"
)

// TestReproductions: docs/reproductions.md says of each claim what the recorded
// runs say. What it says of networks and factors that could not be measured
// changes with what cnibench has; -update writes that anew.
func TestReproductions(t *testing.T) {
	names, err := paper.List(papers.FS)
	if err != nil {
		t.Fatal(err)
	}
	if *keepRuns != "" {
		for _, id := range names {
			if slices.Contains(unrecorded(), id) {
				continue
			}
			keep(t, filepath.Join(*keepRuns, id), filepath.Join(recordedRuns, id))
		}
	}
	doc, rows := reproductionsHead, []string{}
	for _, id := range names {
		if slices.Contains(unrecorded(), id) {
			text := unrecordedText(t, id)
			doc, rows = doc+text, append(rows, text)
			continue
		}
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

// unrecorded are the studies of which no run is kept yet. Take a study from this list
// when you record it.
func unrecorded() []string { return []string{"infrabuilder2024"} }

// unrecordedText is the part of the document of a study that was not measured yet.
func unrecordedText(t *testing.T, id string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(recordedRuns, id)); err == nil {
		t.Errorf("%s has a recorded run: take it from the list of those without one", id)
	}
	p, err := paper.Load(papers.FS, id, cli.PaperKnown())
	if err != nil {
		t.Fatal(err)
	}
	counted := 0
	for _, c := range p.Claims {
		if c.Counts() {
			counted++
		}
	}
	return studyHead(p.Publication) + fmt.Sprintf("%d findings and numbers. No run is recorded yet: `cnibench reproduce %s` measures it.\n\n[Every sentence and its claim](../papers/%s/README.md).\n", counted, id, id)
}

// studyHead begins the part of a study.
func studyHead(p paper.Publication) string {
	return fmt.Sprintf("\n## %s\n\n%s: *%s*. %s, %d.\n\n> %s\n\n", p.ID, strings.Join(p.Authors, ", "), p.Title, p.PublishedIn, p.Year, p.Question)
}

// recordedReproduction holds a recorded run against its paper.
func recordedReproduction(t *testing.T, id string) paper.Reproduction {
	t.Helper()
	dir := filepath.Join(t.TempDir(), id)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(recordedRuns, id))); err != nil {
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
	var stdout, stderr bytes.Buffer
	if status := cli.Main([]string{"reproduce", id, "--from", dir, "--json"}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	var r paper.Reproduction
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// keep packs what claims and tables need of a run: no histograms, no series, no
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
		text, err := without([]byte(line), "histogram", "series")
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

Each study names the time of its records, the version of cnibench and the kernel. A part of
each study's campaign ran once on one machine with 2 cores, which other programs used most
of the time. All nodes were network namespaces of its one kernel. Intervals are therefore
wide and most claims undecided. Absolute values, and everything that a NIC or a second
machine contributes, are not reproduced; the shapes may be.

**Two things changed after these records were made.** The lab's flannel now has flanneld's
own rules, and with them connection tracking. Claims were corrected: where they now name
other cells (Calico and Cilium with connection tracking, all sizes, all profiles), the
records lack these cells, and the claim is "not measurable here" until the study is
recorded again.

[How a claim is judged](adding-a-paper.md#how-it-is-judged) explains the verdicts. The
folders of [papers](../papers) have the claims, the published numbers and the campaigns,
with a list of each study's sentences and their claims.

Ours is left / right with its 95 % interval, for the pair that decides the verdict.
Findings and numbers count; questions, related work and settings are only shown.
`

// studyText is a study's part of the document.
func studyText(r paper.Reproduction) string {
	var b strings.Builder
	p := r.Publication
	b.WriteString(studyHead(p))
	var counts []string
	for _, w := range paper.Words() {
		counts = append(counts, fmt.Sprintf("%d %s", r.Count(w), w))
	}
	fmt.Fprintf(&b, "%d findings and numbers: %s. Up to %d blocks, recorded %s.\n\n", len(r.Counted()), strings.Join(counts, ", "), r.Blocks, report.RecordedWords(r.Recorded))
	fmt.Fprintf(&b, "[Every sentence and its claim](../papers/%s/README.md).\n", p.ID)
	for _, name := range slices.Sorted(maps.Keys(r.Untaken)) {
		fmt.Fprintf(&b, "\nProfile %s did not take effect: %s.\n", name, escaped(strings.Join(r.Untaken[name], "; ")))
	}
	b.WriteString("\n| claim | kind | published | ours | verdict |\n|---|---|---|---|---|\n")
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "%s | %s | %s | %s | %s |\n", verdictRow(v), v.Claim.Kind, escaped(v.Claim.Published), escaped(report.OursWords(v)), v.Word)
	}
	var known []string
	for _, v := range r.Verdicts {
		if v.Word == paper.Contradicted && v.Claim.Known != "" {
			known = append(known, fmt.Sprintf("- `%s`: %s\n", v.Claim.ID, v.Claim.Known))
		}
	}
	if len(known) > 0 {
		b.WriteString("\nWhat would explain the contradictions:\n\n" + strings.Join(known, ""))
	}
	return b.String()
}

// verdictRow begins a claim's row. The verdict is in it, so that a test may look
// for both together.
func verdictRow(v paper.Verdict) string {
	mark := map[paper.Word]string{paper.Reproduced: "✓", paper.Contradicted: "✗", paper.Undecided: "?", paper.NotMeasurable: "–"}[v.Word]
	return fmt.Sprintf("| %s `%s`", mark, v.Claim.ID)
}

// colours are what a tool writes to a terminal to colour its output.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// escaped is a text as a cell of a table in Markdown, without a terminal's colours.
func escaped(s string) string {
	s = colours.ReplaceAllString(s, "")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(s)
}
