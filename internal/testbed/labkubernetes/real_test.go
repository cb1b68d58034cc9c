package labkubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
)

// inVM names what only the kernel of the virtual machine has, of what real networks need.
func inVM() string { return netns.Flowtable().Name }

// notInCI names what CI cannot install.
const notInCI = "apptainer"

// realRows are the rows that docs/real.md must have of the real networks: of the lab's, and of
// those of its Kubernetes; and the names of all that CI runs.
func realRows(t *testing.T) (rows, run []string) {
	t.Helper()
	for _, n := range catalog.List() {
		where, test := "lab", "TestPodsReachEachOther"
		if slices.ContainsFunc(n.Needs, func(f netns.Feature) bool { return f.Name == inVM() }) {
			where, test = "virtual machine", "TestInVM"
		}
		if n.Kind == result.KindReal && slices.ContainsFunc(n.Needs, func(f netns.Feature) bool { return f.Name == notInCI }) {
			rows = append(rows, fmt.Sprintf("| `%s` | nowhere | none |", n.Name))
			continue
		}
		if n.Kind == result.KindReal && !result.IsLadderOnly(n.Name) {
			rows, run = append(rows, fmt.Sprintf("| `%s` | %s | `%s` |", n.Name, where, test)), append(run, n.Name)
		}
	}
	tests := map[string]string{"bridge": "`TestUpRunsPodsAndLeavesNothingInCluster`", "ptp": "`TestMPIInCluster`"}
	for _, a := range agentTests() {
		if tests[a.cni] = "`TestAgentsInCluster`"; a.kernel != nil {
			tests[a.cni] = "`TestAgentsInVM`"
		}
		if a.long || a.kernel != nil {
			tests[a.cni] += ", only in `make test-all`"
		}
	}
	all, err := CNIs()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		test := tests[c.Name]
		if test == "" {
			test = "none"
		} else if !strings.Contains(test, "make test-all") && !slices.Contains(run, c.Name) {
			run = append(run, c.Name)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | Kubernetes | %s |", c.Name, test))
	}
	return rows, run
}

// TestRealNetworksDocument: docs/real.md has each real network with where CI runs it and by
// which test, and their number.
func TestRealNetworksDocument(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/real.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, run := realRows(t)
	_, section, _ := strings.Cut(string(doc), "\n## Which real networks CI runs\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var has []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			has = append(has, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(has, rows) {
		t.Errorf("docs/real.md must have these rows:\n%s", strings.Join(rows, "\n"))
	}
	if !strings.Contains(section, fmt.Sprintf("\n%d real networks run in CI: ", len(run))) {
		t.Errorf("docs/real.md must say that %d real networks run in CI: %s", len(run), strings.Join(run, ", "))
	}
	if len(run) < 16 {
		t.Errorf("only %d real networks run in CI", len(run))
	}
	text, err := os.ReadFile("../../cli/mpi_cluster_test.go")
	if err != nil || !strings.Contains(string(text), `"--cni", "ptp"`) {
		t.Errorf("TestMPIInCluster is not on ptp (%v)", err)
	}
	if spec().CNI != "bridge" {
		t.Errorf("TestUpRunsPodsAndLeavesNothingInCluster is on %s", spec().CNI)
	}
}

// TestRealNetworksRunHere: the kernel of CI has what the real networks of the lab need.
func TestRealNetworksRunHere(t *testing.T) {
	labtest.Root(t)
	for _, n := range catalog.List() {
		if n.Kind != result.KindReal {
			continue
		}
		t.Run(n.Name, func(t *testing.T) { needed(t, n) })
	}
}

func needed(t *testing.T, n network.Network) {
	for _, f := range n.Needs {
		err := f.Probe()
		if err == nil || f.Name == inVM() || f.Name == notInCI {
			continue
		}
		if labtest.CI() {
			t.Fatalf("docs/real.md says that CI runs it: %v", err)
		}
		labtest.Feature(t, f.Name, err)
	}
}

// TestEveryTestOfTheDocumentExists: the functions that docs/real.md names.
func TestEveryTestOfTheDocumentExists(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/real.md")
	if err != nil {
		t.Fatal(err)
	}
	code := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "../*/*_test.go", "../../*/*_test.go", "../../network/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
				code[m[1]] = true
			}
		}
	}
	for _, m := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(doc), -1) {
		if !code[m[1]] {
			t.Errorf("docs/real.md names %s, which does not exist", m[1])
		}
	}
}
