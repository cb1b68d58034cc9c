package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
)

// TestMatrixCutChangesMachine: the matrix of the paper is one file, whose plan says how long it
// takes; a small cut of it (two messages, three profiles of eight, one MTU) runs
// in a lab that may change the machine, tuned's too, which then is as it was.
func TestMatrixCutChangesMachine(t *testing.T) {
	labtest.Root(t)
	labtest.Tool(t, "tuned", "tuned")
	labtest.Tool(t, "ansible-playbook", "ansible-core")
	r := exec.NewRunner()
	defer r.Close()
	dir := labtest.OpenTempDir(t)
	run := func(argv ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		res, err := r.Run(ctx, exec.Cmd{
			Argv: append([]string{filepath.Join(built, "cnibench")}, argv...), Dir: dir,
			Env: []string{"CNIBENCH_STATE_DIR=" + filepath.Join(dir, "labs"), "TMPDIR=" + dir},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(res.Stdout)
	}
	matrix, err := filepath.Abs("../../examples/dakic-matrix.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if plan := run("run", matrix, "--dry-run", "--allow-host-tuning"); !regexp.MustCompile(`(?m)^dakic-matrix: 1600 cells,.*\nexpected time: \d+h`).MatchString(plan) {
		t.Errorf("the plan begins: %.200s", plan)
	}
	text, err := os.ReadFile(matrix)
	if err != nil {
		t.Fatal(err)
	}
	cut := string(text)
	for _, c := range []struct{ from, to string }{
		{`\[host, [^]]*\]`, "[host, flannel/vxlan]"}, {`\[10-gigabit\]`, "[unshaped]"}, {`\[64, 512[^]]*\]`, "[64, 15000]"},
		{`mtu: \[1500, 9000\]`, "mtu: [1500]"}, {`(?m)^  - (accelerator|hpc|latency|network-throughput|nic_).*\n`, ""},
		{`(?s)sampling:.*`, "sampling: {slices: 8, seconds: 0.2, warmup_seconds: 0.05, explain_seconds: 0.1, min_blocks: 2, max_blocks: 2}\n"},
	} {
		cut = regexp.MustCompile(c.from).ReplaceAllString(cut, c.to)
	}
	if err := os.WriteFile(filepath.Join(dir, "cut.yaml"), []byte(cut), 0o644); err != nil {
		t.Fatal(err)
	}
	sysctls := func() string {
		t.Helper()
		res, err := r.Run(t.Context(), exec.Cmd{Argv: []string{"sysctl", "net.core", "net.ipv4.tcp_sack", "net.ipv4.tcp_fastopen", "vm.dirty_ratio", "vm.swappiness"}})
		if err != nil {
			t.Fatal(err)
		}
		return string(res.Stdout)
	}
	before := sysctls()
	run("run", "cut.yaml", "--out", "r", "--seed", "1", "--allow-host-tuning")
	if diff := cmp.Diff(before, sysctls()); diff != "" {
		t.Errorf("the machine is not as before\n%s", diff)
	}
	rec, err := result.Read(filepath.Join(dir, "r"))
	if err != nil {
		t.Fatal(err)
	}
	buffers, swap := map[string]string{}, map[string]string{}
	for _, s := range rec.Samples {
		if s.Status != result.StatusOK {
			t.Logf("%s %s: %s", s.ID, s.Cell.Profile, s.Reason) // a busy machine
			continue
		}
		buffers[s.Cell.Profile] = s.Settings[result.ServerNode]["net.core.rmem_max"]
		swap[s.Cell.Profile] = s.Settings[result.ServerNode]["vm.swappiness"]
	}
	if len(rec.Samples) < 96 || buffers["kernel_optimizations"] != "16777216" || buffers["default_settings"] == "16777216" || swap["network-latency"] != "10" {
		t.Errorf("%d samples, rmem_max %v, swappiness %v", len(rec.Samples), buffers, swap)
	}
	if len(rec.Environment.Changed) > 0 {
		t.Errorf("changed: %q", rec.Environment.Changed)
	}
}
