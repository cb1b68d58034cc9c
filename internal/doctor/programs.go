package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/workload"
)

const (
	pluginArea = "CNI plugins"
	toolArea   = "tools"
	// answerWithin is how long a program may take to say its version.
	answerWithin = 5 * time.Second
)

// plugins looks for the CNI plugins that the networks name. One is required
// where the kernel could carry a network that needs it.
func (o Options) plugins(ctx context.Context, runner *exec.Runner, have map[string]error) []Check {
	var names []string
	users, required := map[string][]string{}, map[string]bool{}
	for _, n := range o.Networks {
		for _, p := range n.Plugins {
			if !slices.Contains(names, p) {
				names = append(names, p)
			}
			users[p] = append(users[p], n.Name)
			required[p] = required[p] || carried(n, have)
		}
	}
	var checks []Check
	for _, name := range names {
		c := Check{Area: pluginArea, Name: name, Status: OK, NeededFor: strings.Join(users[name], ", "), Required: required[name]}
		path, err := cni.Find(name, o.PluginDirs)
		if err != nil {
			c.Status, c.Detail = Missing, "not in "+strings.Join(o.PluginDirs, ", ")
			c.Cure = "apt-get install containernetworking-plugins"
		} else {
			c.Status, c.Detail = pluginVersion(ctx, runner, name, path)
		}
		checks = append(checks, c)
	}
	return checks
}

// carried reports whether the kernel lacks nothing that a network needs, as far
// as can be determined.
func carried(n network.Network, have map[string]error) bool {
	for _, f := range n.Needs {
		if lacks(have[f.Name]) {
			return false
		}
	}
	return true
}

// pluginVersion asks the plugin itself.
func pluginVersion(ctx context.Context, runner *exec.Runner, name, path string) (Status, string) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	version, err := cni.Version(ctx, runner, name, []string{filepath.Dir(path)})
	if err != nil {
		return Limited, fmt.Sprintf("%s: %v", path, err)
	}
	return OK, path + ": " + version
}

// tools looks for the programs that workloads drive. None is required: the
// native workloads need none.
func (o Options) tools(ctx context.Context, runner *exec.Runner) []Check {
	var checks []Check
	at := map[string]int{}
	for _, w := range o.Workloads {
		for _, t := range w.Needs {
			i, seen := at[t.Name]
			if !seen {
				c := lookForTool(ctx, runner, t)
				if c.Status == Missing && t.Cure != "" {
					if i, seen = at[t.Cure]; seen { // one build has both
						checks[i].Detail += ", nor is " + t.Name
						continue
					}
					at[t.Cure] = len(checks)
				}
				i = len(checks)
				at[t.Name] = i
				checks = append(checks, c)
			}
			if !slices.Contains(strings.Split(checks[i].NeededFor, ", "), w.Name) {
				checks[i].NeededFor = strings.TrimPrefix(checks[i].NeededFor+", "+w.Name, ", ")
			}
		}
	}
	return checks
}

func lookForTool(ctx context.Context, runner *exec.Runner, t workload.Tool) Check {
	c := Check{Area: toolArea, Name: t.Name, Status: OK}
	path, err := exec.LookPath(t.Name)
	switch {
	case err != nil:
		c.Status, c.Detail, c.Cure = Missing, "not in PATH", t.Install()
		if t.Cure == "" {
			c.Cure += "   # or, in a clone, all tools: make tools"
		}
	case len(t.Version) == 0:
		c.Detail = path
	default:
		c.Detail = path + ", " + toolVersion(ctx, runner, t.Version)
	}
	return c
}

// toolVersion is the first line with a digit that a tool prints when asked; many
// end with a status other than 0 all the same.
func toolVersion(ctx context.Context, runner *exec.Runner, argv []string) string {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	res, _ := runner.Run(ctx, exec.Cmd{Argv: argv})
	for line := range strings.Lines(string(res.Stdout) + "\n" + string(res.Stderr)) {
		if strings.ContainsAny(line, "0123456789") {
			return strings.TrimSpace(line)
		}
	}
	return "no version in the output of " + exec.Cmd{Argv: argv}.String()
}
