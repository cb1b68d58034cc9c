package vm

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOutputEndsWithAStatus(t *testing.T) {
	for _, c := range []struct {
		name, in, out string
		status        int
	}{
		{"fine", "a\nb\n" + statusMark + "0\n", "a\nb\n", 0},
		{"failed", "a\nhalf a line" + statusMark + "2\r\nnoise\n", "a\nhalf a line", 2},
		{"went off", "a\nhalf a li", "a\nhalf a li", -1},
		{"no status", statusMark + "x\n", statusMark + "x\n", -1},
		{"nothing", "", "", -1},
	} {
		var out strings.Builder
		status, err := copyOutput(&out, strings.NewReader(c.in))
		if err != nil || status != c.status || out.String() != c.out {
			t.Errorf("%s: status %d, output %q, %v", c.name, status, out.String(), err)
		}
	}
}

func TestInstructionsAreCountedOnOneCPU(t *testing.T) {
	err := Machine{CPUs: 2, CountInstructions: true}.Run(t.Context(), Program{}, nil)
	if err == nil || !strings.Contains(err.Error(), "on 1 CPU") {
		t.Error(err)
	}
	m := Machine{CPUs: 1}
	if slices.Contains(m.qemu("", ""), "-icount") {
		t.Error("instructions are counted unasked")
	}
	m.CountInstructions = true
	if got := strings.Join(m.qemu("", ""), " "); !strings.Contains(got, "-icount shift=0") || strings.Contains(got, "kvm") {
		t.Error(got)
	}
}

func TestTestsAreRead(t *testing.T) {
	events := `{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"run","Test":"TestA/b"}
{"Action":"output","Test":"TestA/b","Output":"    x_test.go:1: why\n"}
{"Action":"skip","Test":"TestA/b","Elapsed":0.1}
{"Action":"output","Output":"panic: no\n"}
{"Action":"fail"}
`
	all, rest, err := readTests([]byte(events))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range all {
		got = append(got, one.name+" "+one.action+" "+one.said.String())
	}
	want := []string{"TestA  === RUN   TestA\n", "TestA/b skip     x_test.go:1: why\n"}
	if diff := cmp.Diff(want, got); diff != "" || rest != "panic: no\n" {
		t.Errorf("%s, rest %q", diff, rest)
	}
	if _, _, err := readTests([]byte("none\n")); err == nil {
		t.Error("what is no JSON was taken")
	}
}

// TestBackportsAreCached: a kernel of the backports that is in the cache is used, without apt.
func TestBackportsAreCached(t *testing.T) {
	cache := t.TempDir()
	root := filepath.Join(cache, "linux-image-6.12.1+deb12-amd64")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cache, backportsVersion), []byte("6.12.1+deb12-amd64\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := FetchBackports(t.Context(), nil, cache)
	if want := (Kernel{Version: "6.12.1+deb12-amd64", Root: root, Image: root + "/boot/vmlinuz-6.12.1+deb12-amd64"}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// TestAptOfItsOwn: apt gets its source and its lists from one folder alone.
func TestAptOfItsOwn(t *testing.T) {
	const source = "deb [signed-by=/key] http://mirror/debian bookworm-backports main\n"
	dir := t.TempDir()
	options, err := aptOf(source, dir)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(options, " ")
	for _, want := range []string{"Dir::Etc::sourceparts=- ", "Dir::Etc::sourcelist=" + dir + "/", "Dir::State::lists=" + dir + "/", "Dir::Cache=" + dir} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "sources.list")); err != nil || string(got) != source {
		t.Errorf("%q, %v", got, err)
	}
}

// TestProgramInVM runs this test's own program there, which sees this machine's
// files, changes none of them, and ends with a status.
func TestProgramInVM(t *testing.T) {
	m := ForTests(t)
	dir := t.TempDir()
	const script = `echo "$WORD of $(uname -r) in $(pwd)" | tee here; ls /proc/sys/net/ipv4/conf; modprobe ipip && ip link show tunl0 && exit 3`
	var out strings.Builder
	err := m.Run(t.Context(), Program{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"WORD=it's"}, Dir: dir}, &out)
	var ended *ExitError
	if !errors.As(err, &ended) || ended.Status != 3 {
		t.Errorf("%v, want status 3: %s", err, out.String())
	}
	if want := "it's of " + m.Kernel.Version + " in " + dir + "\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if _, err := os.Stat(filepath.Join(dir, "here")); err == nil {
		t.Error("a file of this machine was written")
	}
}
