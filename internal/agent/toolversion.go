package agent

import (
	"context"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/workload"
)

const versionTimeout = 5 * time.Second

// ToolVersionsFile has the versions of an image's tools, as JSON by name: an image has no
// package database, which some are asked for by.
const ToolVersionsFile = "/etc/cnibench-tools.json"

// ToolVersion is the first line that a tool prints when asked for its version, on stdout or
// stderr and whatever its status; "" where it prints none.
func ToolVersion(ctx context.Context, runner *exec.Runner, t workload.Tool) string {
	ctx, stop := context.WithTimeout(ctx, versionTimeout)
	defer stop()
	// Many tools end with status 1 after their version: only the text counts.
	res, _ := runner.Run(ctx, exec.Cmd{Argv: t.Version, Env: []string{"LC_ALL=C"}})
	if line := firstLine(string(res.Stdout)); line != "" {
		return line
	}
	return firstLine(string(res.Stderr))
}

func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
