package cni

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
)

// Version describes a plugin's binary: the line that it prints when run by
// hand, the versions of the CNI specification that it supports, and the head
// of its SHA-256, as distributions build plugins without a version.
func Version(ctx context.Context, runner *exec.Runner, plugin string, dirs []string) (string, error) {
	path, err := Find(plugin, dirs)
	if err != nil {
		return "", err
	}
	res, err := runner.Run(ctx, exec.Cmd{
		Argv: []string{path}, Env: []string{"CNI_COMMAND=VERSION"}, CleanEnv: true,
		Stdin: strings.NewReader(`{"cniVersion":"1.0.0"}`),
	})
	if err != nil {
		return "", fmt.Errorf("version of CNI plugin %s: %w", plugin, err)
	}
	var said struct {
		SupportedVersions []string `json:"supportedVersions"`
	}
	if err := json.Unmarshal(res.Stdout, &said); err != nil {
		return "", fmt.Errorf("version of CNI plugin %s: %w", plugin, err)
	}
	sum, err := checksum(path)
	if err != nil {
		return "", err
	}
	s := "supports CNI " + strings.Join(said.SupportedVersions, ", ") + "; sha256 " + sum
	if line := banner(ctx, runner, path); line != "" {
		s = line + "; " + s
	}
	return s, nil
}

// banner is the first line that a plugin prints without CNI_COMMAND; not every
// plugin does.
func banner(ctx context.Context, runner *exec.Runner, path string) string {
	res, err := runner.Run(ctx, exec.Cmd{Argv: []string{path}, CleanEnv: true})
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(res.Stderr)+string(res.Stdout)), "\n")
	return line
}

func checksum(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))[:16], nil
}
