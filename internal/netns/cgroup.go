package netns

import (
	"errors"
	"os"
	"strings"
)

// CgroupRoot is where this machine has its one tree of cgroups v2, beside
// version 1 or alone. The error is a *MissingError where it has none.
func CgroupRoot() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		mount, kind, ok := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		if ok && strings.HasPrefix(kind, "cgroup2 ") && len(fields) > 4 && fields[3] == "/" {
			return fields[4], nil
		}
	}
	return "", &MissingError{"cgroup2", errors.New("no cgroup2 is mounted")}
}

// CgroupRoots are the tops of all of this machine's hierarchies of cgroups, of
// version 1 and 2; none where it has none.
func CgroupRoots() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var roots []string
	for line := range strings.Lines(string(mounts)) {
		mount, kind, ok := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		if ok && strings.HasPrefix(kind, "cgroup") && len(fields) > 4 && fields[3] == "/" {
			roots = append(roots, fields[4])
		}
	}
	return roots, nil
}

// Cgroup2 is cgroups of version 2, where eBPF programs see a program's sockets.
func Cgroup2() Feature {
	return Feature{
		Name: "cgroup2", Doc: "eBPF at the sockets of chosen programs (+sockmap)",
		Cure: "mount -t cgroup2 none /sys/fs/cgroup/unified",
		Probe: func() error {
			_, err := CgroupRoot()
			return err
		},
	}
}
