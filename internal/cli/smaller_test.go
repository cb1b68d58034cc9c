package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
)

// Every command clears what a killed one left, those too that only look.
func TestLookingClearsKilledLabs(t *testing.T) {
	t.Parallel()
	for _, look := range [][]string{{"lab", "list"}, {"lab", "exec", "node1-pod1", "--", "true"}} {
		inCampaign(t, steady, func(s *survivor, before labtest.Trace) {
			r := s.run()
			s.middle(r)
			if err := syscall.Kill(r.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			r.wait(t)
			looked := s.start(s.command(look...))
			looked.wait(t)
			if looked.stdout.Len() > 0 || !strings.Contains(string(looked.Stderr()), "cleared what a killed command left") {
				t.Errorf("%v printed %q and %q", look, looked.stdout, looked.Stderr())
			}
			s.leavesNothing(before)
		})
	}
}

// A run that is resumed on another machine would mix its samples with those of
// the first.
func TestResumeElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	inCampaign(t, steady, func(s *survivor, _ labtest.Trace) {
		r := s.run()
		s.middle(r)
		if err := syscall.Kill(r.PID(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		r.wait(t)
		environment := filepath.Join(s.out, "environment.json")
		there := bytes.Replace(s.read("environment.json"), []byte(`"cpus": `), []byte(`"cpus": 1`), 1)
		if err := os.WriteFile(environment, there, 0o644); err != nil {
			t.Fatal(err)
		}
		records := s.read("samples.jsonl")
		s.resume().ends(t, 2, "cannot resume", "CPUs: 1", "--allow-changed-environment")
		if !bytes.Equal(s.read("samples.jsonl"), records) || !bytes.Equal(s.read("environment.json"), there) {
			t.Error("the refused resume changed the directory")
		}
		c := s.command("run", s.campaign(), "--out", s.out, "--resume", "--allow-changed-environment")
		if resumed := s.start(c); resumed.wait(t) != 0 {
			t.Errorf("%s", resumed.Stderr())
		}
		if !strings.Contains(string(s.read("environment.json")), "CPUs: 1") {
			t.Error("the environment does not say that it changed")
		}
	})
}
