package cli_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A run with a CNI plugin that is killed fails that network's cells. The user's
// environment is in no file that the run wrote, and in nothing that it printed.
func TestSecretsOfTheEnvironmentStayThere(t *testing.T) {
	t.Parallel()
	s := newSurvivor(t)
	plugin := filepath.Join(s.work, "plugins", "bridge") // found before the real one
	if err := os.Mkdir(filepath.Dir(plugin), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plugin, []byte(`#!/bin/sh
# The pods of the lab get their network; those that samples add do not.
cd "${0%/*}"
if [ "$CNI_COMMAND" = ADD ]; then
	echo "$CNI_CONTAINERID" >>added
	if [ "$(wc -l <added)" -gt 2 ]; then
		env >&2
		kill -9 $$
	fi
fi
exec /usr/lib/cni/bridge
`), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("name: tiny\nnetworks: [bridge]\nworkloads: [{name: pod_setup}]\nsampling: {seconds: 0.05, warmup_seconds: 0.01, min_blocks: 2, max_blocks: 2}\n")
	c := s.command("run", s.campaign(), "--out", s.out, "--cni-path", filepath.Dir(plugin))
	c.Env = append(c.Env, "SECRET=hunter2")
	r := s.start(c)
	r.wait(t)
	if !bytes.Contains(s.read("samples.jsonl"), []byte("CNI plugin bridge failed on ADD")) {
		t.Errorf("the plugin was not run, or its failure is not recorded:\n%s\n%s", s.read("samples.jsonl"), r.Stderr())
	}
	for name, text := range map[string][]byte{"stdout": r.stdout.Bytes(), "stderr": r.Stderr()} {
		if bytes.Contains(text, []byte("hunter2")) {
			t.Errorf("%s holds the secret:\n%s", name, text)
		}
	}
	err := filepath.WalkDir(s.work, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("hunter2")) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func (s *survivor) read(name string) []byte {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.out, name))
	if err != nil {
		s.t.Error(err)
	}
	return text
}
