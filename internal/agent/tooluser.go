//go:build linux

package agent

import (
	"bufio"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// nobody is the user and group that own nothing (Linux Standard Base, and the kernel's
// overflowuid).
const nobody = 65534

// toolUser is who runs tools: where this agent is root it is nobody, as tools listen to
// whoever reaches them; 0 is the agent's own user. Root that may not become another user,
// or whose user namespace has no nobody, stays what it is.
func toolUser() uint32 {
	if os.Geteuid() != 0 || !maps65534("/proc/self/uid_map") || !maps65534("/proc/self/gid_map") {
		return 0
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return 0
	}
	const needed = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_CHOWN
	if caps[0].Effective&needed != needed {
		return 0
	}
	return nobody
}

// maps65534 reports whether nobody exists in a user namespace (user_namespaces(7)).
func maps65534(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(fields[0], 10, 64)
		count, err2 := strconv.ParseUint(fields[2], 10, 64)
		if err1 == nil && err2 == nil && first <= nobody && nobody-first < count {
			return true
		}
	}
	return false
}

// give makes a tool's scratch folder its user's own, and lets that user through the
// agent's folder around it, which others still cannot list.
func give(dir string, user uint32) error {
	if user == 0 {
		return nil
	}
	return errors.Join(giveAll(dir, func(path string) error { return os.Lchown(path, int(user), int(user)) }), os.Chmod(filepath.Dir(dir), 0o711))
}

// giveAll gives what is in a folder, and the folder last: until then nobody else can enter
// it and put something else, such as a link to a file of root's, at a name that is given.
func giveAll(dir string, one func(path string) error) error {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	for _, path := range slices.Backward(paths) {
		if err == nil {
			err = one(path)
		}
	}
	return err
}

// bindTo fills in what a serving tool listens on: the measured address where it is one of
// this place's own, or else all.
func bindTo(asked ServeParams, port uint16) []string {
	bind := asked.Program.AnyAddress
	if own(asked.Address) {
		bind = asked.Address
	}
	var fill []string
	if bind != "" {
		fill = append(fill, "{bind}", bind, "{listen}", net.JoinHostPort(bind, strconv.Itoa(int(port))))
	}
	if port != 0 {
		fill = append(fill, "{port}", strconv.Itoa(int(port)))
	}
	return fill
}

// own reports whether an address is one of this place's. That of a service is not, where
// it leads here.
func own(address string) bool {
	a, err := netip.ParseAddr(address)
	if err != nil || a.IsUnspecified() || a.Zone() != "" {
		return false
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, one := range all {
		if p, err := netip.ParsePrefix(one.String()); err == nil && p.Addr().Unmap() == a.Unmap() {
			return true
		}
	}
	return false
}
