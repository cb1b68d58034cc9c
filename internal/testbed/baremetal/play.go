package baremetal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/ansible"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/scratch"
)

// scratchPattern names the folders that ansible-playbook is given. The lock
// that a living owner holds distinguishes them from those of a killed one.
const scratchPattern = "cnb-ansible-*"

// player runs the collection's playbooks.
type player struct {
	runner *exec.Runner
	dir    *os.File // a folder of its own, locked
	// patience is how long a playbook may take; 0: playWithin.
	patience time.Duration
}

// playWithin is how long a playbook may take. A connection that breaks ends it earlier; this
// bounds one whose host answers and gets nowhere, as with a program there that is stopped.
func playWithin(name string) time.Duration {
	switch name {
	case "tune":
		return 2 * time.Minute
	case "deploy", "collect": // which copy files
		return 30 * time.Minute
	}
	return 5 * time.Minute
}

// newPlayer writes the collection to a folder, as Ansible reads only files.
func newPlayer(r *exec.Runner) (*player, error) {
	if _, err := exec.LookPath("ansible-playbook"); err != nil {
		return nil, errors.New("hosts are changed by Ansible, which is not here: apt-get install --no-install-recommends ansible-core")
	}
	dir, err := scratch.Make(scratchPattern)
	if err != nil {
		return nil, err
	}
	p := &player{runner: r, dir: dir}
	if err := os.CopyFS(filepath.Join(dir.Name(), "ansible_collections", "cnibench", "testbed"), ansible.Files); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *player) close() error {
	return errors.Join(os.RemoveAll(p.dir.Name()), p.dir.Close())
}

// env is what Ansible gets in addition to its arguments. Nothing of the user's own
// configuration of connections is undone: it comes from the inventory.
func (p *player) env() []string {
	at := func(name string) string { return filepath.Join(p.dir.Name(), name) }
	return []string{
		"LC_ALL=C.UTF-8", "ANSIBLE_NOCOLOR=1", "ANSIBLE_DEPRECATION_WARNINGS=0", "ANSIBLE_LOCALHOST_WARNING=0",
		"ANSIBLE_COLLECTIONS_PATH=" + p.dir.Name(), "ANSIBLE_COLLECTIONS_PATHS=" + p.dir.Name(),
		homeOf(p.dir.Name()), "ANSIBLE_LOCAL_TEMP=" + at("local"), "ANSIBLE_RETRY_FILES_ENABLED=0",
		"ANSIBLE_REMOTE_TEMP=" + passing, "ANSIBLE_REMOTE_TMP=" + passing,
		"ANSIBLE_STDOUT_CALLBACK=cnibench.testbed.records", "ANSIBLE_PIPELINING=1", "ANSIBLE_PYTHON_INTERPRETER=auto_silent",
		// No connection outlives a task, so none is left behind.
		"ANSIBLE_SSH_ARGS=-o ControlMaster=no -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -o LogLevel=ERROR",
		"ANSIBLE_SSH_RETRIES=0",
	}
}

// record is one line of the callback cnibench.testbed.records.
type record struct {
	Event, Host, Task, Role string
	Changed                 bool
	Ignored                 bool
	Msg                     any
	Stdout, Stderr          string
	ModuleStderr            string `json:"module_stderr"`
	Settings                []madeSetting
	Values                  map[string]string
	Restored                []string
	PIDs                    []int
}

// madeSetting is what the module host_settings says of a setting.
type madeSetting struct {
	Name, Asked, Reason string
	Before, Value       *string
}

// play runs a playbook of the collection. The records are given even where it
// fails; the error then has one line for each host.
func (p *player) play(ctx context.Context, inventory, name string, vars map[string]any, limit string) ([]record, error) {
	text, err := unsafeVars(vars)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(p.dir.Name(), "vars.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	argv := []string{"ansible-playbook", "-i", inventory, "-e", "@" + file, "cnibench.testbed." + name}
	if limit != "" {
		argv = append(argv, "--limit", limit)
	}
	within := cmp.Or(p.patience, playWithin(name))
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	res, err := p.runner.Run(bounded, exec.Cmd{Argv: argv, Env: p.env()})
	records, rest := parseRecords(res.Stdout)
	if err == nil {
		return records, nil
	}
	if ctx.Err() != nil {
		return records, fmt.Errorf("%s: %w", name, context.Cause(ctx))
	}
	if failed := failures(records); failed != nil {
		return records, failed
	}
	if bounded.Err() != nil {
		return records, &HostError{
			Host: cmp.Or(limit, "the hosts"), Lost: true,
			Text: fmt.Sprintf("%s did not end within %v", name, within), Cure: "see whether a program there is stopped or hangs: ps -eo pid,stat,args",
		}
	}
	return records, fmt.Errorf("%s: %w %s", name, err, rest)
}

// parseRecords takes the callback's lines out of all that is printed.
func parseRecords(out []byte) (records []record, rest string) {
	var other []string
	for line := range bytes.Lines(out) {
		var r record
		if json.Unmarshal(line, &r) == nil && r.Event != "" {
			records = append(records, r)
		} else if text := strings.TrimSpace(string(line)); text != "" {
			other = append(other, text)
		}
	}
	return records, strings.Join(other, "; ")
}

// failures makes one error for each host that failed.
func failures(records []record) error {
	var errs []error
	for _, r := range records {
		said := strings.TrimSpace(fmt.Sprint(r.Msg))
		if r.ModuleStderr != "" {
			said += ": " + lastLine(r.ModuleStderr)
		}
		switch {
		case r.Event == "unreachable":
			errs = append(errs, unreachable(r.Host, said))
		case r.Event == "failed" && !r.Ignored:
			if r.Stderr != "" {
				said += ": " + lastLine(r.Stderr)
			}
			errs = append(errs, &HostError{Host: r.Host, Text: strings.Join(strings.Fields(r.Task+": "+said), " ")})
		}
	}
	return errors.Join(errs...)
}
