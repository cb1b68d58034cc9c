package dataplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// The datapaths of Open vSwitch: the kernel's own, and the one in
// ovs-vswitchd, to which packets come by AF_PACKET and tap devices.
const (
	OVSKernel = "system"
	OVSUser   = "netdev"
)

// ovsSchema is where Debian's package has the schema of the database.
const ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// OVS is the Open vSwitch of one node. Database, sockets, logs and pid files
// are all in dir, and its daemons run in the node's namespace, so that they
// go with the lab.
type OVS struct {
	ns  netns.NS
	Dir string
}

// NodeOVS is the Open vSwitch of a node.
func NodeOVS(self network.Node) OVS { return OVS{ns: self.NS, Dir: OVSDir(self)} }

// OVSDir is the folder of a node's Open vSwitch.
func OVSDir(self network.Node) string { return filepath.Join(self.DataDir, "ovs") }

// OVSTools is the Debian package, as a feature of the machine.
func OVSTools() netns.Feature {
	return netns.Feature{
		Name: "ovs-vswitchd", Doc: "networks of Open vSwitch", Cure: "apt-get install openvswitch-switch", Probe: func() error {
			for _, program := range []string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl"} {
				if _, err := exec.LookPath(program); err != nil {
					return fmt.Errorf("%s is not installed: apt-get install openvswitch-switch", program)
				}
			}
			if _, err := os.Stat(ovsSchema); err != nil {
				return fmt.Errorf("%w: apt-get install openvswitch-switch", err)
			}
			return nil
		},
	}
}

// OVSDatapath reports which datapath an Open vSwitch has here: the kernel's,
// where that has all the features, else the one in user space.
func OVSDatapath(kernel ...netns.Feature) string {
	for _, f := range append(kernel, netns.OpenVSwitch()) {
		if f.Probe() != nil {
			return OVSUser
		}
	}
	return OVSKernel
}

// OVSCarries is what carries an Open vSwitch's packets: the kernel's datapath
// with the features, or tap devices.
func OVSCarries(kernel ...netns.Feature) netns.Feature {
	return netns.Feature{
		Name: "openvswitch or tun", Doc: "Open vSwitch in the kernel or in user space", Cure: netns.OpenVSwitch().Cure + "; " + netns.TUN().Cure,
		Probe: func() error {
			if OVSDatapath(kernel...) == OVSKernel {
				return nil
			}
			return netns.TUN().Probe()
		},
	}
}

// OVSDescribe says which datapath an Open vSwitch has here, of which version.
func OVSDescribe(ctx context.Context, datapath string) (string, error) {
	r := exec.NewRunner()
	defer r.Close()
	got, err := r.Run(ctx, exec.Cmd{Argv: []string{"ovs-vswitchd", "--version"}})
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(got.Stdout), "\n")
	_, version, ok := strings.Cut(first, ") ")
	if !ok {
		return "", fmt.Errorf("ovs-vswitchd --version said %q: no version in it", first)
	}
	where := "in the kernel"
	if datapath == OVSUser {
		where = "in user space (netdev: AF_PACKET and tap devices)"
	}
	return fmt.Sprintf("Open vSwitch %s, %s", version, where), nil
}

// Start makes the database and starts both daemons. They outlive this process
// where the lab does; whoever takes the lab down kills what is in its
// namespaces.
func (o OVS) Start(ctx context.Context) error {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	db := filepath.Join(o.Dir, "conf.db")
	if _, err := o.Run(ctx, "", "ovsdb-tool", "create", db, ovsSchema); err != nil {
		return err
	}
	if err := o.daemon("ovsdb-server", db, "--remote=p"+o.Socket()); err != nil {
		return err
	}
	if _, err := o.VSCtl(ctx, "--retry", "--no-wait", "init"); err != nil {
		return o.Explain("ovsdb-server", err)
	}
	var booted unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &booted); err != nil {
		return err
	}
	if wait := ovsCountsCPUs - time.Duration(booted.Nano()); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return o.daemon("ovs-vswitchd", o.Socket())
}

// ovsCountsCPUs is how long after the machine has booted ovs-vswitchd is started at the earliest. In a
// machine that booted less than 10 s ago it counts no processors, and so has no thread for packets
// without a flow ("Overriding n-handler-threads to 0" in its log, and 2 once these 10 s are over).
// With the kernel's datapath it then loses all such packets for good (Open vSwitch 3.1.0, Linux 6.1:
// "missed:50 lost:50" in dpctl/show).
const ovsCountsCPUs = 11 * time.Second

// Socket is the database of the switch, as ovs-vsctl names it.
func (o OVS) Socket() string { return "unix:" + filepath.Join(o.Dir, "db.sock") }

// daemon starts one in the foreground of a session of its own.
func (o OVS) daemon(program string, args ...string) error {
	file := func(suffix string) string { return filepath.Join(o.Dir, program+suffix) }
	log, err := os.Create(file(".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	argv := append([]string{program}, args...)
	argv = append(argv, "--pidfile="+file(".pid"), "--unixctl="+file(".ctl"), "-vconsole:info", "-vsyslog:off")
	r := exec.NewRunner()
	defer r.Close()
	return r.Detach(exec.Cmd{Argv: argv, NetNS: o.ns.Path, Env: o.env()}, log)
}

// env keeps every file of Open vSwitch's in the folder.
func (o OVS) env() []string {
	var env []string
	for _, name := range []string{"OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"} {
		env = append(env, name+"="+o.Dir)
	}
	return env
}

// ovsPatience is how long a program waits for its turn at a daemon.
const ovsPatience = 50 * time.Second

// Run runs one of Open vSwitch's programs to its end and gives what it said. Where
// the daemon has no room for one more connection it tries again: an agent has one
// for all of its pods, of a hundred plugins at once each comes with its own.
func (o OVS) Run(ctx context.Context, stdin string, argv ...string) (string, error) {
	return Repeat(ctx, ovsPatience, OVSBusy, func() exec.Cmd {
		return exec.Cmd{Argv: argv, Env: o.env(), Stdin: strings.NewReader(stdin)}
	})
}

// Repeat runs a program to its end and gives what it said. It runs it again while its
// error is one to wait for, until patience is over.
func Repeat(ctx context.Context, patience time.Duration, wait func(error) bool, command func() exec.Cmd) (string, error) {
	r := exec.NewRunner()
	defer r.Close()
	for until := time.Now().Add(patience); ; {
		got, err := r.Run(ctx, command())
		if !wait(err) || time.Now().After(until) {
			return string(got.Stdout), err
		}
		select {
		case <-ctx.Done():
			return "", errors.Join(err, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// OVSBusy reports that a daemon's socket had as many waiting as it takes, 64 (EAGAIN,
// which Open vSwitch calls a protocol error).
func OVSBusy(err error) bool { return OVSSaid(err, "(Protocol error)") }

// OVSSaid reports that one of Open vSwitch's programs failed with these words.
func OVSSaid(err error, words string) bool {
	var failed *exec.Error
	return errors.As(err, &failed) && strings.Contains(string(failed.Stderr), words)
}

// VSCtl configures the switch and waits until that is done. Commands are
// divided by "--".
func (o OVS) VSCtl(ctx context.Context, args ...string) (string, error) {
	return o.Run(ctx, "", append([]string{"ovs-vsctl", "--db=" + o.Socket(), "--timeout=30"}, args...)...)
}

// Configure is vsctl for the node's set-up, where what vswitchd has to say is
// of use.
func (o OVS) Configure(ctx context.Context, args ...string) error {
	_, err := o.VSCtl(ctx, args...)
	if err != nil {
		return o.Explain("ovs-vswitchd", err)
	}
	return nil
}

// Explain adds the end of a daemon's log to an error.
func (o OVS) Explain(program string, err error) error {
	said, readErr := os.ReadFile(filepath.Join(o.Dir, program+".log"))
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return fmt.Errorf("%w (%s said: %s)", err, program, strings.Join(lines[max(0, len(lines)-3):], "; "))
}

// AddFlows adds OpenFlow flows to a bridge, all or none.
func (o OVS) AddFlows(ctx context.Context, bridge, flows string) error {
	_, err := o.Run(ctx, flows, "ovs-ofctl", "-OOpenFlow15", "--bundle", "add-flows", bridge, "-")
	return err
}

// DelFlows takes away the flows of a cookie.
func (o OVS) DelFlows(ctx context.Context, bridge string, cookie uint32) error {
	_, err := o.Run(ctx, "", "ovs-ofctl", "-OOpenFlow15", "del-flows", bridge, fmt.Sprintf("cookie=%#x/-1", cookie))
	return err
}

// Ports gives the OpenFlow port of each device, in their order.
func (o OVS) Ports(ctx context.Context, devices ...string) ([]int, error) {
	if len(devices) == 0 {
		return nil, nil
	}
	var args []string
	for _, d := range devices {
		args = append(args, "--", "get", "Interface", d, "ofport")
	}
	out, err := o.VSCtl(ctx, args...)
	if err != nil {
		return nil, err
	}
	var ports []int
	for i, line := range strings.Fields(out) {
		port, err := strconv.Atoi(line)
		if err != nil || port < 1 { // -1: vswitchd could not make it
			return nil, o.Explain("ovs-vswitchd", fmt.Errorf("device %s has the OpenFlow port %s", devices[min(i, len(devices)-1)], line))
		}
		ports = append(ports, port)
	}
	if len(ports) != len(devices) {
		return nil, fmt.Errorf("ovs-vsctl gave %d ports for %d devices", len(ports), len(devices))
	}
	return ports, nil
}

// Gone reports whether a program failed because the switch no longer runs. That happens
// while a lab is taken down.
func (o OVS) Gone(err error) bool { return OVSSaid(err, "database connection failed") && !OVSBusy(err) }
