//go:build linux

package agent

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/workload"
)

const versionTimeout = 5 * time.Second

// tools finds which of some tools are installed, and their versions.
func (s *server) tools(ctx context.Context, p ToolsParams) (ToolsResult, error) {
	res := ToolsResult{Versions: map[string]string{}}
	for _, t := range p.Tools {
		if _, err := exec.LookPath(t.Name); err == nil {
			res.Versions[t.Name] = s.versionOf(ctx, t)
		}
	}
	return res, nil
}

// version is that of the program argv0, if a workload says how to ask for it.
func (s *server) version(ctx context.Context, argv0 string) string {
	name := filepath.Base(argv0)
	for _, w := range workload.List() {
		for _, t := range w.Spec().Needs {
			if t.Name == name {
				return s.versionOf(ctx, t)
			}
		}
	}
	return ""
}

// versionOf is the first line that a tool prints when asked for its version,
// on stdout or stderr and whatever its status; "" where it prints none. A tool
// is asked once.
func (s *server) versionOf(ctx context.Context, t workload.Tool) string {
	s.mu.Lock()
	known, ok := s.versions[t.Name]
	s.mu.Unlock()
	if ok || len(t.Version) == 0 {
		return known
	}
	ctx, stop := context.WithTimeout(ctx, versionTimeout)
	defer stop()
	// Many tools end with status 1 after their version: only the text counts.
	res, _ := s.runner.Run(ctx, exec.Cmd{Argv: t.Version, Env: []string{"LC_ALL=C"}})
	line := firstLine(string(res.Stdout))
	if line == "" {
		line = firstLine(string(res.Stderr))
	}
	if ctx.Err() == nil {
		s.mu.Lock()
		s.versions[t.Name] = line
		s.mu.Unlock()
	}
	return line
}

func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
