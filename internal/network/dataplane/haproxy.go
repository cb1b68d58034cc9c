package dataplane

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
)

const (
	haproxy = "haproxy"
	// haproxyPID ends the name of a file with the numbers of an HAProxy's processes.
	haproxyPID = ".pid"
	// haproxyPatience is how long an HAProxy has to answer at its socket.
	haproxyPatience = 2 * time.Second
)

// HAProxyTool is the Debian package, as a feature of the machine.
func HAProxyTool() netns.Feature {
	return netns.Feature{Name: haproxy, Doc: "proxies of a service mesh, and an ingress", Cure: "apt-get install haproxy", Probe: func() error {
		if _, err := exec.LookPath(haproxy); err != nil {
			return fmt.Errorf("%s is not installed: apt-get install haproxy", haproxy)
		}
		return nil
	}}
}

// HAProxyVersion is the name and version of what is installed: "HAProxy 2.6.12-1+deb12u4".
func HAProxyVersion(ctx context.Context) (string, error) {
	r := exec.NewRunner()
	defer r.Close()
	got, err := r.Run(ctx, exec.Cmd{Argv: []string{haproxy, "-v"}})
	if err != nil {
		return "", err
	}
	return parseHAProxyVersion(string(got.Stdout))
}

// parseHAProxyVersion reads "HAProxy version 2.6.12-1+deb12u4 2026/01/02 - https://haproxy.org/".
func parseHAProxyVersion(printed string) (string, error) {
	fields := strings.Fields(printed)
	if len(fields) < 3 || fields[0] != "HAProxy" || fields[1] != "version" {
		return "", fmt.Errorf("haproxy -v printed %q: no version in it", strings.TrimSpace(printed))
	}
	return "HAProxy " + fields[2], nil
}

// HAProxy is one HAProxy, by the folder of its files and its name there.
type HAProxy struct{ Dir, Name string }

// HAProxies are those that have been started with files in a folder and not ended.
func HAProxies(dir string) ([]HAProxy, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+haproxyPID))
	if err != nil {
		return nil, err
	}
	var all []HAProxy
	for _, path := range files {
		all = append(all, HAProxy{dir, strings.TrimSuffix(filepath.Base(path), haproxyPID)})
	}
	return all, nil
}

// PlaceHAProxies moves all threads of those with files in a folder to some CPUs; to all that
// this process may use where there are none.
func PlaceHAProxies(dir string, cpus []int) error {
	all, err := HAProxies(dir)
	if err != nil {
		return err
	}
	for _, one := range all {
		processes, err := one.processes()
		if err == nil {
			err = PlaceProcesses(processes, cpus)
		}
		if err != nil {
			return fmt.Errorf("CPUs of the proxy %s: %w", one.Name, err)
		}
	}
	return nil
}

func (h HAProxy) file(suffix string) string { return filepath.Join(h.Dir, h.Name+suffix) }

// Started reports whether it has been started and not ended.
func (h HAProxy) Started() bool {
	_, err := os.Stat(h.file(haproxyPID))
	return err == nil
}

// Socket is a line of the section global that gives it a socket at which Requests asks.
func (h HAProxy) Socket() string {
	return "stats socket unix@" + h.Name + ".sock mode 600 level user"
}

// Start starts it in a namespace with a configuration, and returns when it takes connections.
// If it runs already, the new one takes its ports over, and the old one ends with its last
// connection. It outlives this process where the lab does; whoever takes the lab down kills
// what is in its namespaces.
func (h HAProxy) Start(ctx context.Context, ns netns.NS, config string) error {
	if err := os.MkdirAll(h.Dir, 0o755); err != nil {
		return err
	}
	before, err := h.processes()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(h.file(".cfg"), []byte(config), 0o644); err != nil {
		return err
	}
	// With -D its first process ends once all ports are open. It is in its folder, since the
	// path of a socket has at most 107 bytes (unix(7)).
	argv := []string{haproxy, "-D", "-C", h.Dir, "-f", h.file(".cfg"), "-p", h.file(haproxyPID)}
	if len(before) > 0 {
		argv = append(argv, "-sf")
		for _, pid := range before {
			argv = append(argv, strconv.Itoa(pid))
		}
	}
	r := exec.NewRunner()
	defer r.Close()
	if _, err := r.Run(ctx, exec.Cmd{Argv: argv, NetNS: ns.Path}); err != nil {
		return fmt.Errorf("proxy in %s: %w", ns.Name, err)
	}
	return nil
}

// processes are the numbers of its processes that run.
func (h HAProxy) processes() ([]int, error) {
	text, err := os.ReadFile(h.file(haproxyPID))
	if err != nil {
		return nil, err
	}
	var all []int
	for line := range strings.Lines(string(text)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.file(haproxyPID), err)
		}
		// Its number may be another program's by now.
		argv, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if strings.Contains(string(argv), h.file(".cfg")) {
			all = append(all, pid)
		}
	}
	return all, nil
}

// End ends it at once.
func (h HAProxy) End() error {
	all, err := h.processes()
	if err != nil {
		return err
	}
	for _, pid := range all {
		_ = unix.Kill(pid, unix.SIGKILL) // it may have ended since
	}
	return os.Remove(h.file(haproxyPID))
}

// Requests is how many requests its frontends have taken since it was started, by its own count. Its
// configuration has the line of Socket.
func (h HAProxy) Requests(ctx context.Context) (uint64, error) {
	dir, err := os.Open(h.Dir)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	ctx, cancel := context.WithTimeout(ctx, haproxyPatience)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s.sock", dir.Fd(), h.Name))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return 0, err
	}
	// Of all proxies (-1) the frontends (1), whatever their number (-1).
	if _, err := io.WriteString(conn, "show stat -1 1 -1\n"); err != nil {
		return 0, err
	}
	const most = 1 << 20 // it prints half a KiB for each
	return parseHAProxyRequests(io.LimitReader(conn, most))
}

// parseHAProxyRequests adds up the requests of all frontends (HAProxy's Management Guide, 9.1:
// CSV, whose first line begins with "# "). Those at the socket itself are not among them.
func parseHAProxyRequests(printed io.Reader) (sum uint64, err error) {
	rows := csv.NewReader(printed)
	rows.FieldsPerRecord = -1
	head, err := rows.Read()
	if err != nil {
		return 0, fmt.Errorf("haproxy's show stat: %w", err)
	}
	column := slices.Index(head, "req_tot")
	if column < 0 {
		return 0, errors.New("haproxy's show stat has no req_tot")
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return sum, nil
		}
		if err != nil {
			return 0, fmt.Errorf("haproxy's show stat: %w", err)
		}
		if len(row) <= column {
			return 0, fmt.Errorf("haproxy's show stat: a line of %d fields", len(row))
		}
		n, err := strconv.ParseUint(row[column], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("haproxy's show stat: %w", err)
		}
		sum += n
	}
}
