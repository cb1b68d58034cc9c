package fault

import (
	"os"
	"path/filepath"
	"testing"
)

// The ways in which a CNI plugin of Plugin misbehaves, as lines of a shell script.
const (
	// NeverReturns: it waits for ever, heeds no signal that can be caught, and so does a
	// process that it has started, which holds its stdout open.
	NeverReturns = "trap '' TERM INT HUP\nsleep 100000 &\nsleep 100000\nsleep 100000\n"
	// Orphans: it ends at once, and leaves a process in a session of its own that holds
	// its stdout open for ten seconds.
	Orphans = "setsid sleep 10 &\nexit 1\n"
	// Killed: it is killed in mid-call.
	Killed = "kill -9 $$\n"
	// Floods: it writes until nobody reads.
	Floods = "exec cat /dev/zero\n"
	// Lies: what it prints is no result.
	Lies = "echo '{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"\x1b[2J\"}]}'\n"
)

// Plugin puts a CNI plugin that misbehaves on ADD and DEL into a folder. It answers VERSION
// as a plugin should. Each process of it notes its number in the file that Notes names.
func Plugin(t testing.TB, dir, name, how string) {
	t.Helper()
	script := "#!/bin/sh\n[ \"$CNI_COMMAND\" = VERSION ] && { echo '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}'; exit 0; }\n" +
		"echo $$ >>'" + Notes(dir, name) + "'\n" + how
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Notes is the file of the process numbers of a Plugin, one in each line.
func Notes(dir, name string) string { return filepath.Join(dir, name+".pids") }
