package profile

import (
	"bufio"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// tunedFolders are where tuned looks for its profiles, below the root (tuned.conf(5)).
func tunedFolders() []string { return []string{"etc/tuned", "usr/lib/tuned", "usr/lib/tuned/profiles"} }

// mostIncludes is how deep profiles of tuned include each other at most.
const mostIncludes = 10

// KnobsMissing says, one line each, which knobs of the scheduler a profile of tuned sets and this
// machine does not have. root is the machine's file system. Linux 6.6 replaced some of them, such as
// min_granularity_ns. tuned reports these as errors when it applies the profile.
//
// tuned looks for sched_NAME in /proc/sys/kernel, and for NAME in /sys/kernel/debug/sched
// (tuned 2.20, plugin_scheduler.py).
func KnobsMissing(root fs.FS, tuned string) []string {
	var out []string
	for range mostIncludes {
		text := tunedProfile(root, tuned)
		include, section := "", ""
		for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
			line := strings.TrimSpace(lines.Text())
			if strings.HasPrefix(line, "[") {
				section = strings.Trim(line, "[]")
				continue
			}
			key, value, is := strings.Cut(line, "=")
			key, value = strings.TrimSpace(key), strings.TrimSpace(value)
			knob, sched := strings.CutPrefix(key, "sched_")
			switch {
			case !is || strings.HasPrefix(line, "#"):
			case section == "main" && key == "include":
				include = value
			case section == "scheduler" && sched && !exists(root, "proc/sys/kernel/"+key) && !exists(root, "sys/kernel/debug/sched/"+knob):
				out = append(out, fmt.Sprintf("tuned: this machine has neither /proc/sys/kernel/%s nor /sys/kernel/debug/sched/%s", key, knob))
			}
		}
		if include == "" || !fs.ValidPath(include) {
			break
		}
		tuned = include
	}
	return out
}

// tunedProfile is the text of a profile of tuned; "" where there is none.
func tunedProfile(root fs.FS, name string) string {
	for _, folder := range tunedFolders() {
		if text, err := fs.ReadFile(root, path.Join(folder, name, "tuned.conf")); err == nil {
			return string(text)
		}
	}
	return ""
}

func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}
