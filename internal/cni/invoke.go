package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/plain"
)

// Timing is how long one plugin took for one verb. An IPAM plugin that it
// delegates to is within.
type Timing struct {
	Plugin, Verb string
	Took         time.Duration
}

// PluginError is a plugin that failed, in its own words.
type PluginError struct {
	Plugin, Verb string
	Code         uint // of the CNI specification; 0 where the plugin gave none
	Msg, Details string
}

func (e *PluginError) Error() string {
	s := fmt.Sprintf("CNI plugin %s failed on %s: %s", e.Plugin, e.Verb, e.Msg)
	if e.Details != "" {
		s += ": " + e.Details
	}
	if e.Code != 0 {
		s += fmt.Sprintf(" (CNI error code %d)", e.Code)
	}
	return plain.Text(s)
}

// invoker is libcni's way to plugins: through the runner, in the node's
// network namespace.
type invoker struct {
	version.PluginDecoder
	runner *exec.Runner
	netns  string
	times  []Timing
}

func (i *invoker) FindInPath(plugin string, dirs []string) (string, error) {
	return Find(plugin, dirs)
}

// ExecPlugin runs one plugin. libcni's environ holds this program's whole
// environment; the plugin gets the variables of the specification and PATH.
func (i *invoker) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	t := Timing{Plugin: filepath.Base(path), Verb: lookup(environ, "CNI_COMMAND")}
	begin := time.Now()
	res, err := i.runner.Run(ctx, exec.Cmd{
		Argv: []string{path}, Env: pluginEnv(environ), CleanEnv: true, NetNS: i.netns, Stdin: bytes.NewReader(stdin),
	})
	t.Took = time.Since(begin)
	i.times = append(i.times, t)
	if err == nil {
		return res.Stdout, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("CNI plugin %s on %s: %w", t.Plugin, t.Verb, context.Cause(ctx))
	}
	return nil, pluginError(t, res, err)
}

// pluginEnv is what a plugin may see: the CNI_ variables and PATH. It comes from
// a package or a campaign, and what it prints becomes a record's reason.
func pluginEnv(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		return !strings.HasPrefix(kv, "CNI_") && !strings.HasPrefix(kv, "PATH=")
	})
}

// pluginError reads a plugin's error, JSON on stdout by the specification; a
// plugin that crashed has none.
func pluginError(t Timing, res exec.Result, err error) error {
	e := &PluginError{Plugin: t.Plugin, Verb: t.Verb}
	var said types.Error
	if json.Unmarshal(res.Stdout, &said) == nil && said.Msg != "" {
		e.Code, e.Msg, e.Details = said.Code, said.Msg, said.Details
		return e
	}
	e.Msg = fmt.Sprintf("exit status %d", res.ExitCode)
	if res.ExitCode < 0 {
		e.Msg = err.Error()
	}
	for _, out := range [][]byte{res.Stderr, res.Stdout} {
		if s := strings.TrimSpace(string(out)); s != "" {
			e.Details = s[:min(len(s), 2000)]
			break
		}
	}
	return e
}

func lookup(environ []string, key string) string {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}
