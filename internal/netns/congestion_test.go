package netns_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
)

// restricted is an algorithm that the kernel has and that users may not choose.
func restricted(t *testing.T) string {
	t.Helper()
	read := func(name string) []string {
		data, err := os.ReadFile("/proc/sys/net/ipv4/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(data))
	}
	allowed := read("tcp_allowed_congestion_control")
	for _, name := range read("tcp_available_congestion_control") {
		if !slices.Contains(allowed, name) {
			return name
		}
	}
	t.Skip("kernel has no congestion control that it does not allow to all users")
	return ""
}

// cgroupOf makes a cgroup of version 2 for a test.
func cgroupOf(t *testing.T) *os.File {
	t.Helper()
	root, err := netns.CgroupRoot()
	if err != nil {
		t.Skip("kernel has no cgroups of version 2: ", err)
	}
	path, err := os.MkdirTemp(root, "cnb-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	})
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// sockets runs Python as nobody in a cgroup: a listener and a connection over loopback of
// its own. It prints what setsockopt says and which algorithms both ends have.
func sockets(t *testing.T, cgroup *os.File, algorithm string) string {
	t.Helper()
	labtest.Tool(t, "python3", "python3")
	const script = `
import socket, sys, os
os.setgid(65534); os.setuid(65534)
name = sys.argv[1].encode()
s, c = socket.socket(), socket.socket()
try:
    if name: c.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
    said = "set"
except PermissionError: said = "refused"
s.bind(("127.0.0.1", 0)); s.listen(); c.connect(s.getsockname()); a, _ = s.accept()
of = lambda x: x.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
print(said, of(c), of(a))`
	r := exec.NewRunner()
	defer r.Close()
	res, err := r.Run(t.Context(), exec.Cmd{Argv: []string{"python3", "-c", script, algorithm}, Cgroup: cgroup})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(res.Stdout))
}

// TestAllowCongestionControls: processes without any right may choose what the machine
// allows to root alone, in the cgroup and nowhere else; a name that no kernel has is
// refused as ever.
func TestAllowCongestionControls(t *testing.T) {
	labtest.Root(t)
	name := restricted(t)
	inside, outside := cgroupOf(t), cgroupOf(t)
	if got := sockets(t, inside, name); !strings.HasPrefix(got, "refused ") {
		t.Fatalf("before: %s", got)
	}
	if err := netns.AllowCongestionControls(inside); err != nil {
		t.Fatal(err)
	}
	if got := sockets(t, inside, name); !strings.HasPrefix(got, "set "+name+" ") {
		t.Errorf("inside: %s, want %s to be set", got, name)
	}
	if got := sockets(t, outside, name); !strings.HasPrefix(got, "refused ") {
		t.Errorf("outside: %s", got)
	}
	if got := sockets(t, inside, ""); strings.Contains(got, name) {
		t.Errorf("who asks for none has %s", got)
	}
}

// TestUseCongestionControl: both ends of connections have the algorithm without asking,
// until it is closed.
func TestUseCongestionControl(t *testing.T) {
	labtest.Root(t)
	name := restricted(t)
	cgroup := cgroupOf(t)
	held, err := netns.UseCongestionControl(cgroup, name)
	if err != nil {
		t.Fatal(err)
	}
	if got := sockets(t, cgroup, ""); got != "set "+name+" "+name {
		t.Errorf("the ends have %q, want %s", got, name)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if got := sockets(t, cgroup, ""); strings.Contains(got, name) {
		t.Errorf("after it was closed: %s", got)
	}
	if _, err := netns.UseCongestionControl(cgroup, strings.Repeat("x", 16)); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a name that is too long: %v", err)
	}
}
