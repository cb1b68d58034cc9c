package profile

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// tunedFolders are where tuned looks for a profile, below the root, the administrator's own first
// (tuned.conf(5) of version 2.20; later versions have a folder profiles in each).
func tunedFolders() []string {
	return []string{"etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"}
}

// KnobsMissing says, one line each, which knobs of the scheduler a profile of tuned sets and this
// machine does not have. root is the machine's file system. Linux 6.6 replaced some of them, such as
// min_granularity_ns. tuned reports these as errors when it applies the profile.
//
// tuned looks for sched_NAME in /proc/sys/kernel, and for NAME in /sys/kernel/debug/sched
// (tuned 2.20, plugin_scheduler.py). One that may not be looked up counts as present.
func KnobsMissing(root fs.FS, tuned string) []string {
	var out []string
	names := []string{tuned} // with those that they include
	for i := 0; i < len(names); i++ {
		keys, includes := tunedScheduler(tunedProfile(root, names[i]))
		for _, key := range keys {
			knob := strings.TrimPrefix(key, "sched_")
			if absent(root, "proc/sys/kernel/"+key) && absent(root, "sys/kernel/debug/sched/"+knob) {
				out = append(out, fmt.Sprintf("tuned: this machine has neither /proc/sys/kernel/%s nor /sys/kernel/debug/sched/%s", key, knob))
			}
		}
		for _, name := range includes {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// tunedScheduler reads the text of a profile of tuned: the knobs that its section scheduler sets, and
// the profiles that it includes.
func tunedScheduler(text string) (keys, includes []string) {
	section := ""
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		switch {
		case section == "main" && key == "include":
			for _, name := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ';' }) {
				includes = append(includes, strings.TrimSpace(name))
			}
		case section == "scheduler" && strings.HasPrefix(key, "sched_"):
			keys = append(keys, key)
		}
	}
	return keys, includes
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

func absent(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return errors.Is(err, fs.ErrNotExist)
}
