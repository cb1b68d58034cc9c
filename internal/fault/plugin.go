package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The ways in which a CNI plugin of Plugin misbehaves, as lines of a shell script.
const (
	// NeverReturns: it waits for ever, heeds no signal that can be caught, and so does a
	// process that it has started, which holds its stdout open.
	NeverReturns = "trap '' TERM INT HUP\nsleep 100000 &\nsleep 100000\nsleep 100000\n"
	// Orphans: it ends at once, and leaves a process in a session of its own that holds
	// its stdout open.
	Orphans = "setsid sleep 100000 &\necho $! >>\"$0.pids\"\nexit 1\n"
	// Killed: it is killed in mid-call.
	Killed = "kill -9 $$\n"
	// Floods: it writes until nobody reads.
	Floods = "exec cat /dev/zero\n"
	// Lies: what it prints is no result.
	Lies = "echo '{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"\x1b[2J\"}]}'\n"
)

// Plugin puts a CNI plugin that misbehaves on ADD and DEL into a folder. It answers VERSION
// as a plugin should. Each process of it notes its number in the file that Notes names, and
// those that live are killed when the test ends.
func Plugin(t testing.TB, dir, name, how string) {
	t.Helper()
	script := "#!/bin/sh\n[ \"$CNI_COMMAND\" = VERSION ] && { echo '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}'; exit 0; }\n" +
		"echo $$ >>\"$0.pids\"\n" + how
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		notes, _ := os.ReadFile(Notes(dir, name)) // none: it was never run
		for _, line := range strings.Fields(string(notes)) {
			pgid, err := strconv.Atoi(line)
			if err != nil {
				t.Error(err)
				continue
			}
			for _, pid := range Group(pgid) {
				// The number may be somebody else's by now.
				if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && strings.Contains(string(env), dir) {
					Kill(t, pid)
				}
			}
		}
	})
}

// Notes is the file of the process numbers of a Plugin, one in each line.
func Notes(dir, name string) string { return filepath.Join(dir, name+".pids") }
