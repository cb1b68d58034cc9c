//go:build linux

package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/workload"
)

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

// versionOf is ToolVersion, or what an image says. A tool is asked once.
func (s *server) versionOf(ctx context.Context, t workload.Tool) string {
	s.mu.Lock()
	known, ok := s.versions[t.Name]
	s.mu.Unlock()
	if ok || len(t.Version) == 0 {
		return known
	}
	ctx, stop := context.WithTimeout(ctx, versionTimeout)
	defer stop()
	line := imageVersion(t)
	if line == "" {
		line = ToolVersion(ctx, s.runner, t)
	}
	if ctx.Err() == nil {
		s.mu.Lock()
		s.versions[t.Name] = line
		s.mu.Unlock()
	}
	return line
}

// imageVersion is what the file of an image says of a tool whose version this place has no
// program to ask for; "" where there is none.
func imageVersion(t workload.Tool) string {
	if _, err := exec.LookPath(t.Version[0]); err == nil {
		return ""
	}
	versions := map[string]string{}
	data, err := os.ReadFile(ToolVersionsFile)
	if err != nil || json.Unmarshal(data, &versions) != nil {
		return "" // this is no image with tools
	}
	return firstLine(versions[t.Name])
}
