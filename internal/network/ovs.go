package network

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
)

// The datapaths of Open vSwitch: the kernel's own, and the one in
// ovs-vswitchd, to which packets come by AF_PACKET and tap devices.
const (
	ovsKernel = "system"
	ovsUser   = "netdev"
)

// ovsSchema is where Debian's package has the schema of the database.
const ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// ovs is the Open vSwitch of one node. Database, sockets, logs and pid files
// are all in dir, and its daemons run in the node's namespace, so that they
// go with the lab.
type ovs struct {
	ns  netns.NS
	dir string
}

func nodeOVS(self Node) ovs { return ovs{ns: self.NS, dir: ovsDir(self)} }

func ovsDir(self Node) string { return filepath.Join(self.DataDir, "ovs") }

// ovsTools is the Debian package, as a feature of the machine.
func ovsTools() netns.Feature {
	return netns.Feature{
		Name: "ovs-vswitchd", Doc: "networks of Open vSwitch", Mend: "apt-get install openvswitch-switch", Probe: func() error {
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

// ovsDatapath tells which datapath an Open vSwitch has here: the kernel's,
// where that has all the features, else the one in user space.
func ovsDatapath(kernel ...netns.Feature) string {
	for _, f := range append(kernel, netns.OpenVSwitch()) {
		if f.Probe() != nil {
			return ovsUser
		}
	}
	return ovsKernel
}

// ovsCarries is what carries an Open vSwitch's packets: the kernel's datapath
// with the features, or tap devices.
func ovsCarries(kernel ...netns.Feature) netns.Feature {
	return netns.Feature{
		Name: "openvswitch or tun", Doc: "Open vSwitch in the kernel or in user space", Mend: netns.OpenVSwitch().Mend + "; " + netns.TUN().Mend,
		Probe: func() error {
			if ovsDatapath(kernel...) == ovsKernel {
				return nil
			}
			return netns.TUN().Probe()
		},
	}
}

// ovsDescribe says which datapath an Open vSwitch has here, of which version.
func ovsDescribe(ctx context.Context, datapath string) (string, error) {
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
	if datapath == ovsUser {
		where = "in user space (netdev: AF_PACKET and tap devices)"
	}
	return fmt.Sprintf("Open vSwitch %s, %s", version, where), nil
}

// start makes the database and starts both daemons. They outlive this process
// where the lab does; whoever takes the lab down kills what is in its
// namespaces.
func (o ovs) start(ctx context.Context) error {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	db := filepath.Join(o.dir, "conf.db")
	if _, err := o.run(ctx, "", "ovsdb-tool", "create", db, ovsSchema); err != nil {
		return err
	}
	if err := o.daemon("ovsdb-server", db, "--remote=p"+o.socket()); err != nil {
		return err
	}
	if _, err := o.vsctl(ctx, "--retry", "--no-wait", "init"); err != nil {
		return o.explain("ovsdb-server", err)
	}
	return o.daemon("ovs-vswitchd", o.socket())
}

func (o ovs) socket() string { return "unix:" + filepath.Join(o.dir, "db.sock") }

// daemon starts one in the foreground of a session of its own.
func (o ovs) daemon(program string, args ...string) error {
	file := func(suffix string) string { return filepath.Join(o.dir, program+suffix) }
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
func (o ovs) env() []string {
	var env []string
	for _, name := range []string{"OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"} {
		env = append(env, name+"="+o.dir)
	}
	return env
}

// ovsPatience is how long a program waits for its turn at a daemon.
const ovsPatience = 50 * time.Second

// run runs one of Open vSwitch's programs to its end and gives what it said. Where
// the daemon has no room for one more connection it tries again: an agent has one
// for all of its pods, of a hundred plugins at once each comes with its own.
func (o ovs) run(ctx context.Context, stdin string, argv ...string) (string, error) {
	r := exec.NewRunner()
	defer r.Close()
	for until := time.Now().Add(ovsPatience); ; {
		got, err := r.Run(ctx, exec.Cmd{Argv: argv, Env: o.env(), Stdin: strings.NewReader(stdin)})
		if !ovsBusy(err) || time.Now().After(until) {
			return string(got.Stdout), err
		}
		select {
		case <-ctx.Done():
			return "", errors.Join(err, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ovsBusy tells that a daemon's socket had as many waiting as it takes, 64 (EAGAIN,
// which Open vSwitch calls a protocol error).
func ovsBusy(err error) bool { return ovsSaid(err, "(Protocol error)") }

func ovsSaid(err error, words string) bool {
	var failed *exec.Error
	return errors.As(err, &failed) && strings.Contains(string(failed.Stderr), words)
}

// vsctl configures the switch and waits until that is done. Commands are
// divided by "--".
func (o ovs) vsctl(ctx context.Context, args ...string) (string, error) {
	return o.run(ctx, "", append([]string{"ovs-vsctl", "--db=" + o.socket(), "--timeout=30"}, args...)...)
}

// configure is vsctl for the node's set-up, where what vswitchd has to say is
// of use.
func (o ovs) configure(ctx context.Context, args ...string) error {
	_, err := o.vsctl(ctx, args...)
	if err != nil {
		return o.explain("ovs-vswitchd", err)
	}
	return nil
}

// explain adds the end of a daemon's log to an error.
func (o ovs) explain(program string, err error) error {
	said, readErr := os.ReadFile(filepath.Join(o.dir, program+".log"))
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return fmt.Errorf("%w (%s said: %s)", err, program, strings.Join(lines[max(0, len(lines)-3):], "; "))
}

// addFlows adds OpenFlow flows to a bridge, all or none.
func (o ovs) addFlows(ctx context.Context, bridge, flows string) error {
	_, err := o.run(ctx, flows, "ovs-ofctl", "-OOpenFlow15", "--bundle", "add-flows", bridge, "-")
	return err
}

// delFlows takes away the flows of a cookie.
func (o ovs) delFlows(ctx context.Context, bridge string, cookie uint32) error {
	_, err := o.run(ctx, "", "ovs-ofctl", "-OOpenFlow15", "del-flows", bridge, fmt.Sprintf("cookie=%#x/-1", cookie))
	return err
}

// ports gives the OpenFlow port of each device, in their order.
func (o ovs) ports(ctx context.Context, devices ...string) ([]int, error) {
	if len(devices) == 0 {
		return nil, nil
	}
	var args []string
	for _, d := range devices {
		args = append(args, "--", "get", "Interface", d, "ofport")
	}
	out, err := o.vsctl(ctx, args...)
	if err != nil {
		return nil, err
	}
	var ports []int
	for i, line := range strings.Fields(out) {
		port, err := strconv.Atoi(line)
		if err != nil || port < 1 { // -1: vswitchd could not make it
			return nil, o.explain("ovs-vswitchd", fmt.Errorf("device %s has the OpenFlow port %s", devices[min(i, len(devices)-1)], line))
		}
		ports = append(ports, port)
	}
	if len(ports) != len(devices) {
		return nil, fmt.Errorf("ovs-vsctl gave %d ports for %d devices", len(ports), len(devices))
	}
	return ports, nil
}

// gone tells that an error is of a switch that does not run any more, as when
// its lab is being taken down.
func (o ovs) gone(err error) bool { return ovsSaid(err, "database connection failed") && !ovsBusy(err) }
