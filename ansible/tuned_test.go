package ansible

import (
	"strings"
	"testing"
)

// tunedComplaints prints what tuned complained of, for profiles whose sections for disks
// differ.
const tunedComplaints = `
import os, sys
from ansible_collections.cnibench.testbed.plugins.module_utils import tuned

tuned.FOLDERS = [sys.argv[1]]
for name, disk in (("reads-ahead", "readahead=>4096"), ("spins-down", "spindown=6")):
    os.mkdir(os.path.join(sys.argv[1], name))
    with open(os.path.join(sys.argv[1], name, "tuned.conf"), "w") as f:
        f.write("[disk]\n%s\n" % disk)
log = """2026-01-01 00:00:00,000 INFO     tuned.daemon.daemon: starting tuning
2026-01-01 00:00:00,000 WARNING  tuned.plugins.plugin_disk: hdparm command not found, ignoring for other devices
2026-01-01 00:00:00,000 ERROR    tuned.utils.commands: no such file
"""
for profile in ("reads-ahead", "spins-down"):
    print(profile, len(tuned.complaints(log, profile)))
`

// A profile that needs no hdparm has taken effect without it.
func TestTunedWithoutHdparm(t *testing.T) {
	if got := strings.TrimSpace(python(t, tunedComplaints, t.TempDir())); got != "reads-ahead 1\nspins-down 2" {
		t.Error(got)
	}
}
