package cni

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

const plainList = `{"cniVersion":"1.0.0","name":"n","plugins":[
 {"type":"bridge","ipam":{"type":"host-local","subnet":"10.1.0.0/24","dataDir":"/var/lib/mine"}},
 {"type":"tuning","mtu":12345678901234567890},
 {"type":"portmap","ipam":{"type":"dhcp"}}]}`

func TestParseConflist(t *testing.T) {
	list, err := ParseConflist("a.conflist", []byte(plainList))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(list.Plugins(), " "); list.Name() != "n" || got != "bridge host-local tuning portmap dhcp" {
		t.Errorf("%s: %s", list.Name(), got)
	}
	for bad, want := range map[string]string{
		"":                           "not valid JSON",
		"{\n \"name\": nope}":        "a.conflist:2:11: not valid JSON",
		`{"name":1,"plugins":"x"}`:   "a.conflist:1:",
		`{"type":"bridge"}`:          `is the configuration of one plugin (bridge), not a list`,
		`{"name":"n"}`:               "plugins",
		`{"name":"n","plugins":[]}`:  "no plugins",
		`{"plugins":[{"type":"x"}]}`: "name",
		`{"cniVersion":"1.0.0","name":"n","plugins":[{}]}`: "missing 'type'",
		`[]`:   "not valid JSON",
		`null`: "name",
	} {
		_, err := ParseConflist("a.conflist", []byte(bad))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a.conflist") {
			t.Errorf("%q: %v, want %s", bad, err, want)
		}
	}
}

func TestWithDataDirMovesEveryFile(t *testing.T) {
	list, err := ParseConflist("a.conflist", []byte(plainList))
	if err != nil {
		t.Fatal(err)
	}
	moved, err := list.WithDataDir("/run/here")
	if err != nil {
		t.Fatal(err)
	}
	got := string(moved.JSON())
	if n := strings.Count(got, `"dataDir": "/run/here"`); n != 2 || strings.Contains(got, "/var/lib") {
		t.Errorf("%d data folders in %s", n, got)
	}
	if !strings.Contains(got, "12345678901234567890") {
		t.Errorf("a number was changed: %s", got)
	}
}

func FuzzParseConflist(f *testing.F) {
	f.Add([]byte(plainList))
	f.Add([]byte(`{"name":"n","plugins":[{"type":"x","ipam":{"type":"host-local"}}]}`))
	f.Add([]byte(`{"name":"n","plugins":[null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzed.Within(t)()
		list, err := ParseConflist("x", data)
		if err != nil {
			return
		}
		moved, err := list.WithDataDir("/run/here")
		if err != nil {
			t.Fatalf("%q is accepted, but not with a data folder: %v", data, err)
		}
		if got, want := strings.Join(moved.Plugins(), " "), strings.Join(list.Plugins(), " "); got != want {
			t.Errorf("%q: plugins %s, then %s", data, want, got)
		}
	})
}

func TestSearchPath(t *testing.T) {
	t.Setenv("CNI_PATH", "/b::/c")
	if got := strings.Join(SearchPath("/a"), " "); got != "/a /b /c /usr/lib/cni /opt/cni/bin /usr/libexec/cni" {
		t.Errorf("search path %s", got)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"here": 0o755, "data": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Find("here", []string{"/nonesuch", dir}); err != nil || got != filepath.Join(dir, "here") {
		t.Errorf("found %s (%v)", got, err)
	}
	for plugin, want := range map[string]string{
		"data":    "put it in one of them",
		"macvlan": "apt-get install containernetworking-plugins",
		"a/b":     "named without a folder",
		"":        "named without a folder",
	} {
		if _, err := Find(plugin, []string{dir}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", plugin, err, want)
		}
	}
}

func TestPluginErrorsAreInTheirOwnWords(t *testing.T) {
	said := Timing{Plugin: "bridge", Verb: "ADD"}
	for _, c := range []struct {
		res  exec.Result
		want string
	}{
		{exec.Result{Stdout: []byte(`{"code":7,"msg":"no","details":"why"}`), ExitCode: 1}, "CNI plugin bridge failed on ADD: no: why (CNI error code 7)"},
		{exec.Result{Stdout: []byte(`{"msg":"no"}`), ExitCode: 1}, "CNI plugin bridge failed on ADD: no"},
		{exec.Result{Stdout: []byte("oops"), Stderr: []byte("panic: x\n"), ExitCode: 2}, "CNI plugin bridge failed on ADD: exit status 2: panic: x"},
		{exec.Result{Stdout: []byte("oops"), ExitCode: 2}, "CNI plugin bridge failed on ADD: exit status 2: oops"},
		{exec.Result{Stdout: []byte(`{"msg":"\u001b[2J","details":"\u009b2J"}`), ExitCode: 1}, `CNI plugin bridge failed on ADD: \x1b[2J: \u009b2J`},
		{exec.Result{ExitCode: -1}, "CNI plugin bridge failed on ADD: signal: killed"},
	} {
		if got := pluginError(said, c.res, errors.New("signal: killed")).Error(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestVersion(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\n[ -z \"$CNI_COMMAND\" ] && { echo 'CNI toy plugin v9' >&2; exit 0; }\necho '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"0.4.0\",\"1.0.0\"]}'\n"
	if err := os.WriteFile(filepath.Join(dir, "toy"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	r := exec.NewRunner()
	defer r.Close()
	got, err := Version(t.Context(), r, "toy", []string{dir})
	if err != nil || !strings.HasPrefix(got, "CNI toy plugin v9; supports CNI 0.4.0, 1.0.0; sha256 ") {
		t.Errorf("version %q (%v)", got, err)
	}
}

// With SECRET=hunter2 cnibench run …, the secret was in samples.jsonl once.
func TestPluginsDoNotGetTheUsersEnvironment(t *testing.T) {
	t.Setenv("SECRET", "hunter2")
	dir := t.TempDir()
	for name, script := range map[string]string{
		"prints": "#!/bin/sh\nenv >&2\nexit 3\n",
		"killed": "#!/bin/sh\nkill -9 $$\n",
		"broken": "#!/nonesuch/interpreter\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		list, err := ParseConflist("a.conflist", []byte(`{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"`+name+`"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		runner := exec.NewRunner()
		rt := &Runtime{Runner: runner, Path: []string{dir}, CacheDir: t.TempDir()}
		_, err = rt.Add(t.Context(), Attachment{Conflist: list, ContainerID: "pod", Device: "eth0"})
		runner.Close()
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("plugin %s: %v", name, err)
		}
		if name == "prints" && (!strings.Contains(err.Error(), "CNI_COMMAND=ADD") || !strings.Contains(err.Error(), "PATH=")) {
			t.Errorf("the plugin lacks what it needs: %v", err)
		}
	}
}

// TestPluginsThatMisbehave: a plugin that never returns, or leaves a process that holds its
// output, is ended with its time, and all of its process group; each failure is one error
// that names the plugin and steers no terminal.
func TestPluginsThatMisbehave(t *testing.T) {
	const patience = 300 * time.Millisecond
	for name, c := range map[string]struct {
		how  string
		want string
	}{
		"never-returns": {fault.NeverReturns, "CNI plugin never-returns on ADD: the plugin's time is over"},
		"orphans":       {fault.Orphans, "CNI plugin orphans failed on ADD"},
		"killed":        {fault.Killed, "signal: killed"},
		"lies":          {fault.Lies, "lies"},
		"floods":        {fault.Floods, "CNI plugin floods"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fault.Plugin(t, dir, name, c.how)
			list, err := ParseConflist("a.conflist", []byte(`{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"`+name+`"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			runner := exec.NewRunner()
			defer runner.Close()
			rt := &Runtime{Runner: runner, Path: []string{dir}, CacheDir: t.TempDir()}
			within := time.Minute
			if c.how == fault.NeverReturns {
				within = patience
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), within, errors.New("the plugin's time is over"))
			defer cancel()
			begin := time.Now()
			_, err = rt.Add(ctx, Attachment{Conflist: list, ContainerID: "pod", Device: "eth0"})
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\x1b\x00") || len(err.Error()) > 16<<10 {
				t.Errorf("error %.300q, want %q", err, c.want)
			}
			notes, err := os.ReadFile(fault.Notes(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Fields(string(notes))[:1] { // an orphan has a group of its own
				pid, err := strconv.Atoi(line)
				if err != nil {
					t.Fatal(err)
				}
				left := fault.Group(pid)
				for try := 0; len(left) > 0 && try < 100; try++ { // the kernel needs a moment
					time.Sleep(20 * time.Millisecond)
					left = fault.Group(pid)
				}
				if len(left) > 0 {
					t.Errorf("processes of the plugin's group are left: %v", left)
				}
			}
		})
	}
}
