package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// restarted is a run under which a kubelet, and then the API server, is killed and
// started again: the sample under way is failed with its reason, others follow, and
// nothing is left in the end.
func (c *clusters) restarted() {
	t := c.t
	p, _ := c.begin("faults", 500)
	go func() { _, _ = io.Copy(io.Discard, p.Stdout) }() // it ends with the run
	seen := c.sampled("faults", 0, "measured", measured)
	for _, fault := range [][2]string{{"node2", "kubelet"}, {"control-plane", "kube-apiserver"}} {
		again := c.kill(fault[0], fault[1])
		failed := c.sampled("faults", seen+1, "failed for "+fault[1], cut)
		again()
		if seen = c.sampled("faults", failed+1, "measured", measured); t.Failed() {
			break
		}
	}
	if err := p.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the run that was interrupted: %v", err)
	}
	if names := c.left("bridge"); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

func measured(s result.Sample) bool { return s.Status == result.StatusOK }

// cut recognises a sample that was under way and has lost its agent, or one that had not
// begun and was waited for as long as the testbed has patience. On a busy machine
// others fail for reasons of their own.
func cut(s result.Sample) bool {
	return s.Status == result.StatusFailed && (strings.Contains(s.Reason, "the agent is gone") ||
		strings.Contains(s.Reason, "error dialing backend") || strings.Contains(s.Reason, "does not answer"))
}

// samples are those that a run has recorded so far.
func (c *clusters) samples(run string) (all []result.Sample) {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.work, run, result.SamplesFile))
	if err != nil {
		return nil // it has not begun
	}
	for line := range strings.Lines(string(data)) {
		var s result.Sample
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			c.t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// sampled waits for a sample of a kind in a run, and gives the number of the first
// from a number on.
func (c *clusters) sampled(run string, from int, kind string, is func(result.Sample) bool) int {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for i, s := range c.samples(run) {
			if i >= from && is(s) {
				return i
			}
		}
	}
	c.t.Errorf("no sample from the %dth on is %s within a minute: there are %d", from, kind, len(c.samples(run)))
	return from
}

// kill kills a program of the cluster bridge, and gives what starts it again.
func (c *clusters) kill(node, name string) (again func()) {
	t := c.t
	t.Helper()
	labs, err := lab.List(lab.Options{Dir: filepath.Join(c.work, "labs")})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range labs {
		for _, p := range info.Kubernetes.Programs {
			if info.Kubernetes.Name != "bridge" || p.Node != node || p.Name != name {
				continue
			}
			if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return func() { c.start(fmt.Sprintf("/run/netns/cnb-%s-1-%s", info.ID, node), p) }
		}
	}
	t.Fatalf("the cluster bridge has no %s on %s", name, node)
	return nil
}

// start replaces what supervises a program of a node.
func (c *clusters) start(netns string, p state.Program) {
	c.t.Helper()
	log, err := os.Create(filepath.Join(c.work, p.Name+".log"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	// It goes with the lab, as all that is in its namespaces.
	_, err = c.runner.Launch(exec.Cmd{Argv: p.Argv, NetNS: netns, CleanEnv: true, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/root"}}, log)
	if err != nil {
		c.t.Fatal(err)
	}
}
