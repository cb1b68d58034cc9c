package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const rightsArea = "rights"

// privileges reports what this process may do, from /proc/self/status and
// /proc/self/limits (proc(5)).
func (o Options) privileges() []Check {
	status, err := os.ReadFile(filepath.Join(o.Proc, "self/status"))
	if err != nil {
		return []Check{{Area: rightsArea, Name: "root", Status: Missing, Required: true,
			Detail: "unknown: " + err.Error(), Cure: "mount -t proc proc /proc"}}
	}
	checks := []Check{root(string(status))}
	capabilities, err := strconv.ParseUint(field(string(status), "CapEff:"), 16, 64)
	if err != nil {
		checks = append(checks, Check{Area: rightsArea, Name: "capabilities", Status: Missing, Required: true,
			Detail: "unknown: " + err.Error()})
	}
	for _, c := range []struct {
		name, neededFor string
		bit             int
		required        bool
	}{
		{"CAP_NET_ADMIN", "every lab: devices, addresses and routes", unix.CAP_NET_ADMIN, true},
		{"CAP_SYS_ADMIN", "every lab: network namespaces", unix.CAP_SYS_ADMIN, true},
		{"CAP_SYS_RESOURCE", "raising limits above the hard ones; lowering oom_score_adj", unix.CAP_SYS_RESOURCE, false},
	} {
		if err != nil {
			break
		}
		check := Check{Area: rightsArea, Name: c.name, Status: OK, Detail: "effective", NeededFor: c.neededFor, Required: c.required}
		if capabilities&(1<<c.bit) == 0 {
			check.Status, check.Detail = Limited, "not in the effective set"
			check.Cure = "sudo, or in a container: --cap-add=" + strings.TrimPrefix(c.name, "CAP_")
			if c.required {
				check.Status = Missing
			}
		}
		checks = append(checks, check)
	}
	return append(checks, o.openFiles(), o.runWritable())
}

// root reads the effective user id, the second of the line Uid:.
func root(status string) Check {
	c := Check{Area: rightsArea, Name: "root", Status: OK, NeededFor: "every lab", Required: true}
	ids := strings.Fields(field(status, "Uid:"))
	if len(ids) < 2 {
		c.Status, c.Detail = Missing, "unknown: no Uid in /proc/self/status"
		return c
	}
	c.Detail = "user id " + ids[1]
	if ids[1] != "0" {
		c.Status, c.Cure = Missing, "sudo cnibench …"
	}
	return c
}

// field is what follows a name at the start of a line.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, name); found {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// openFilesWanted is enough for a lab of 1,000 pods: one file for each
// namespace, three pipes for each agent.
const openFilesWanted = 8192

func (o Options) openFiles() Check {
	c := Check{Area: rightsArea, Name: "open files", NeededFor: "labs of many pods"}
	text, err := os.ReadFile(filepath.Join(o.Proc, "self/limits"))
	if err != nil {
		c.Status, c.Detail = Limited, "unknown: "+err.Error()
		return c
	}
	limits := strings.Fields(field(string(text), "Max open files"))
	if len(limits) < 2 {
		c.Status, c.Detail = Limited, "unknown: no line Max open files in /proc/self/limits"
		return c
	}
	c.Status, c.Detail = OK, fmt.Sprintf("at most %s (hard limit %s)", limits[0], limits[1])
	if n, err := strconv.Atoi(limits[0]); err == nil && n < openFilesWanted {
		c.Status, c.Cure = Limited, fmt.Sprintf("ulimit -n %d", openFilesWanted)
	}
	return c
}

// runWritable reports whether namespaces and the lab's state can be kept. It asks
// the kernel and writes nothing.
func (o Options) runWritable() Check {
	c := Check{Area: rightsArea, Name: o.Run, Status: OK, Detail: "writable",
		NeededFor: "every lab: its namespaces and its state", Required: true}
	if err := unix.Access(o.Run, unix.W_OK|unix.X_OK); err != nil {
		c.Status, c.Detail = Missing, "cannot be written: "+err.Error()
		c.Cure = "sudo cnibench …, or in a container: --tmpfs " + o.Run
	}
	return c
}
