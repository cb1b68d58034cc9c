package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/scratch"
)

// TestReapClearsFoldersOfPapers: a killed reproduce leaves the folder of its campaign,
// which once stayed.
func TestReapClearsFoldersOfPapers(t *testing.T) {
	dir := labtest.OpenTempDir(t)
	t.Setenv("TMPDIR", dir)
	t.Setenv("CNIBENCH_STATE_DIR", filepath.Join(dir, "labs"))
	living, err := scratch.Make(paperScratch)
	if err != nil {
		t.Fatal(err)
	}
	defer living.Close()
	killed, err := scratch.Make(paperScratch)
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	runner := exec.NewRunner()
	defer runner.Close()
	o, err := labOptions(runner, nil, "test")
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	if err := reap(t.Context(), o, &stderr); err != nil || !strings.Contains(stderr.String(), killed.Name()) {
		t.Errorf("reap: %v, %s", err, stderr.String())
	}
	if _, err := os.Stat(killed.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", killed.Name(), err)
	}
	if _, err := os.Stat(living.Name()); err != nil {
		t.Error(err)
	}
}

// TestSilentError: a status without a message gives way to anything else that
// went wrong.
func TestSilentError(t *testing.T) {
	silent, other := silentError{exitSamplesFailed}, errors.New("the lab is not removed")
	for _, err := range []error{silent, errors.Join(silent, nil), errors.Join(errors.Join(silent), silent)} {
		if got := withoutSilent(err); got != nil {
			t.Errorf("%#v: %v", err, got)
		}
	}
	if got := withoutSilent(errors.Join(errors.Join(silent), other)); !errors.Is(got, other) || errors.As(got, &silent) {
		t.Errorf("%v", got)
	}
}

// TestEveryCommandHasAGroup: each command that people use is in one group of the help, and
// each group names commands that exist.
func TestEveryCommandHasAGroup(t *testing.T) {
	groups := map[string]int{"help": 1, "completion": 1, "version": 1}
	for _, g := range commandGroups() {
		for _, name := range g.commands {
			groups[name]++
		}
	}
	exist := map[string]bool{"help": true, "completion": true}
	for _, c := range Root(io.Discard, io.Discard).Commands() {
		exist[c.Name()] = true
		if c.IsAvailableCommand() && groups[c.Name()] != 1 {
			t.Errorf("%s is in %d groups of commandGroups, want 1", c.Name(), groups[c.Name()])
		}
	}
	for name := range groups {
		if !exist[name] {
			t.Errorf("commandGroups names %s, which is no command", name)
		}
	}
}
