package repo

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// placeholders are the words in capitals that documents write for what a reader has, and
// paths of a reader's machine, each with what the test has in its place.
func placeholders() map[string]string {
	return map[string]string{
		"DIR": "results/latest", "NEW_DIR": "results/latest", "NEW": "results/latest", "BASE": "results/old", "GOAL": "latency", "FORMAT": "json",
		"FILE": "examples/quickstart.yaml", "CAMPAIGN": "examples/quickstart.yaml", "PAPER": "lim2020", "ID": "lim2020", "JOB.yaml": "examples/jobs/spectral.yaml",
		"NAME": "staging", "REGISTRY/cnibench-tools:TAG": "registry.example.com/cnibench-tools:v1",
		"/var/lib/cnibench/results": "results/base", "/var/lib/node_exporter/cnibench.prom": "cnibench.prom",
	}
}

// runElsewhere are the commands that need a cluster, machines, a registry or a database, by
// how they begin, each with the test that runs it on those. The longest beginning counts.
func runElsewhere() map[string]string {
	return map[string]string{
		"clean": "TestKubernetesExampleInCluster", "push": "TestSurvive", "recommend --profile": "TestScripts", "image --push": "TestImagePush", "image --tools": "TestMPIInCluster",
		"hosts bootstrap": "TestHostThatCannotBeUsed", "hosts deploy": "TestHostSteps", "hosts collect": "TestHostSteps", "hosts destroy": "TestHostSteps",
		"hosts reset": "TestHostsOfAClusterInCluster", "lab up --kubernetes": "TestHostsOfAClusterInCluster",
		"lab freeze": "TestMPIInCluster", "lab thaw": "TestMPIInCluster",
	}
}

// statuses are the exit statuses of a command that are as good as 0: those that answer.
func statuses() map[string][]int {
	return map[string][]int{"compare": {0, 3, 5}, "doctor": {0, 1}}
}

// TestCommandsInDocumentsRun runs every command of cnibench that a document shows, in a
// folder with what the documents name: results, campaigns, a kubeconfig, an inventory. A run
// and a reproduction only print their plan (--dry-run, without --live), labs are built as root, and what
// needs a cluster, machines, a registry or a database is run by the test that runElsewhere
// names.
func TestCommandsInDocumentsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds cnibench and runs each command, and is left out by -short: run make test")
	}
	d := newDocumented(t)
	tests := testNames(t)
	ran, dry, away := 0, 0, 0
	for _, path := range files(t, ".md") {
		if path == "CHANGELOG.md" { // commands of older versions
			continue
		}
		for _, c := range commands(path, read(t, path)) {
			words := d.words(c)
			switch name := elsewhere(words); {
			case words == nil:
			case name != "":
				if away++; !tests[name] {
					t.Errorf("%s: %q is run by %s, a test that does not exist", c.where, c.line, name)
				}
			default:
				if words, is := planOnly(words); is {
					dry++
					d.run(c, words)
				} else {
					ran++
					d.run(c, words)
				}
			}
		}
	}
	t.Logf("%d commands were run, %d with --dry-run, %d are run by other tests", ran, dry, away)
	if ran < 50 || dry < 30 {
		t.Error("fewer commands than the documents have: is the search for them broken?")
	}
}

// planOnly adds --dry-run to what would measure.
func planOnly(words []string) ([]string, bool) {
	measures := words[0] == "run" || words[0] == "reproduce" && !slices.Contains(words, "--from")
	if measures && !slices.Contains(words, "--dry-run") {
		words = append(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "--live" }), "--dry-run")
	}
	return words, measures
}

// elsewhere is the test that runs a command; "" where this one does.
func elsewhere(words []string) string {
	line := strings.Join(words, " ")
	for _, begin := range slices.Backward(slices.Sorted(maps.Keys(runElsewhere()))) {
		verb, flag, _ := strings.Cut(begin, " --")
		if strings.HasPrefix(line+" ", verb+" ") && (flag == "" || slices.Contains(words, "--"+flag)) {
			return runElsewhere()[begin]
		}
	}
	return ""
}

// testNames are those of all tests of the tree.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(read(t, s.path), -1) {
				names[m[1]] = true
			}
		}
	}
	return names
}

// documented is the folder in which commands of documents are run.
type documented struct {
	t       *testing.T
	dir     string
	program string
	runner  *exec.Runner
	done    map[string]bool
	// campaign is what commands that read one from standard input get.
	campaign string
}

func newDocumented(t *testing.T) *documented {
	t.Helper()
	d := &documented{t: t, dir: labtest.OpenTempDir(t), runner: exec.NewRunner(), done: map[string]bool{}}
	t.Cleanup(d.runner.Close)
	d.program = filepath.Join(d.dir, "bin", "cnibench")
	if _, err := d.runner.Run(t.Context(), exec.Cmd{Argv: []string{"go", "build", "-trimpath", "-buildvcs=false", "-o", d.program, "."}, Dir: root, Env: []string{"CGO_ENABLED=0"}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"latest", "old", "main", "main/a", "branch", "new", "base/a", "matrix"} {
		d.untar("internal/repo/tour/testdata/quickstart.tar.gz", filepath.Join(d.dir, "results", name))
	}
	d.folder("examples", "examples")
	d.folder("experiments/orders", "experiments/orders")
	d.folder("papers/lim2020", "papers/mine")
	for _, name := range []string{"paper.yaml", "claims.yaml", "campaign.yaml"} {
		d.file(filepath.Join("papers/mine", name), strings.ReplaceAll(read(t, "papers/lim2020/"+name), "lim2020", "mine"))
	}
	for _, name := range []string{"lim2020-1", "mine-1"} {
		d.folder("internal/cli/testdata/reproductions/lim2020", filepath.Join("results", name))
		d.gunzip(filepath.Join(d.dir, "results", name, "samples.jsonl"))
	}
	d.campaign = read(t, "examples/quickstart.yaml")
	d.file("campaign.yaml", d.campaign)
	t.Cleanup(func() { _, _ = d.start("lab", "down", "--all") }) // no lab, or the next command takes it down
	d.file("hosts.yml", "all: {children: {client: {hosts: {left: {ansible_host: 192.0.2.11}}}, server: {hosts: {right: {ansible_host: 192.0.2.12}}}}}\n")
	d.file("home/.kube/config", "apiVersion: v1\nkind: Config\n")
	return d
}

func (d *documented) file(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// folder copies a folder of the tree.
func (d *documented) folder(from, to string) {
	d.t.Helper()
	if err := os.CopyFS(filepath.Join(d.dir, to), os.DirFS(filepath.Join(root, from))); err != nil {
		d.t.Fatal(err)
	}
}

// untar unpacks a recorded result.
func (d *documented) untar(from, to string) {
	d.t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		d.t.Fatal(err)
	}
	archive, err := filepath.Abs(filepath.Join(root, from))
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.runner.Run(d.t.Context(), exec.Cmd{Argv: []string{"tar", "-xzf", archive}, Dir: to}); err != nil {
		d.t.Fatal(err)
	}
}

// gunzip unpacks PATH.gz into PATH.
func (d *documented) gunzip(path string) {
	d.t.Helper()
	packed, err := os.ReadFile(path + ".gz")
	if err != nil {
		d.t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		d.t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// words are the arguments of a command, with what the test has in place of the reader's;
// nil where it is no command of cnibench, is known already, or only names a verb.
func (d *documented) words(c command) []string {
	words := wordsOf(c.line)
	if words == nil || filepath.Base(words[0]) != "cnibench" {
		return nil
	}
	words = words[1:]
	bare := c.prose && !slices.ContainsFunc(words, func(w string) bool {
		return strings.HasPrefix(w, "-") || strings.ContainsAny(w, "./") || strings.ToUpper(w) == w
	})
	if line := strings.Join(words, " "); d.done[line] || bare && words[0] != "list" {
		return nil
	} else {
		d.done[line] = true
	}
	for i, w := range words {
		if with, is := placeholders()[w]; is {
			words[i] = with
		}
	}
	return words
}

// wordsOf are the words of a command's line, without sudo, comments and what follows it in a
// shell.
func wordsOf(line string) []string {
	line, _, _ = strings.Cut(line, " #")
	for _, op := range []string{" && ", "; ", " > ", " 2>", " | "} {
		line, _, _ = strings.Cut(line, op)
	}
	words := strings.Fields(line)
	for len(words) > 0 && words[0] == "sudo" {
		words = words[1:]
	}
	for i, w := range words {
		words[i] = strings.Trim(w, `'"`)
	}
	return words
}

// run runs a command; labs are only built by root.
func (d *documented) run(c command, words []string) {
	d.t.Helper()
	if words[0] == "lab" && os.Getuid() != 0 {
		return
	}
	if i := slices.Index(words, "--to"); i >= 0 { // an example may have written it
		if err := os.RemoveAll(filepath.Join(d.dir, words[i+1])); err != nil {
			d.t.Fatal(err)
		}
	}
	if words[0] == "lab" && (words[1] == "up" || words[1] == "exec") { // one lab at a time
		_, _ = d.start("lab", "down", "--all")
		if words[1] == "exec" {
			_, _ = d.start("lab", "up", "--network", "bridge")
		}
	}
	res, err := d.start(words...)
	good := append([]int{0}, statuses()[words[0]]...)
	if !slices.Contains(good, res.ExitCode) || err != nil && res.ExitCode == 0 {
		d.t.Errorf("%s: cnibench %s: exit status %d (%v)", c.where, strings.Join(words, " "), res.ExitCode, err)
	}
}

// start runs this program with a campaign on its standard input.
func (d *documented) start(words ...string) (exec.Result, error) {
	env := []string{"HOME=" + filepath.Join(d.dir, "home"), "LC_ALL=C.UTF-8", "NO_COLOR=1", "KUBECONFIG=", "CNIBENCH_STATE_DIR=" + filepath.Join(d.dir, "labs")}
	return d.runner.Run(context.WithoutCancel(d.t.Context()), exec.Cmd{Argv: append([]string{d.program}, words...), Dir: d.dir, Env: env, Stdin: strings.NewReader(d.campaign)})
}

// TestElsewhere checks which commands are left to other tests.
func TestElsewhere(t *testing.T) {
	for line, want := range map[string]string{
		"report results/latest":                   "",
		"image --to x.tar":                        "",
		"image --tools --to x.tar":                "TestMPIInCluster",
		"image --push r/x:v1 --binary a":          "TestImagePush",
		"lab up --network bridge":                 "",
		"lab up --nodes 2 --kubernetes --cni ptp": "TestHostsOfAClusterInCluster",
		"hosts reset --inventory hosts.yml":       "TestHostsOfAClusterInCluster",
		"pushes":                                  "",
	} {
		if got := elsewhere(strings.Fields(line)); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	if got := fmt.Sprint(wordsOf("sudo cnibench rbac --user 'alice' | kubectl apply -f - # x")); got != "[cnibench rbac --user alice]" {
		t.Error(got)
	}
}
