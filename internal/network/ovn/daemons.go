package ovn

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// OVN's databases, by the names of their files.
const (
	ovnNorthbound = "nb" // what the logical network is
	ovnSouthbound = "sb" // what each node's ovn-controller makes of it
)

// ovnPort is that of the southbound database (ovn-architecture(7)).
const ovnPort = 6642

// ovnSchemas is where Debian's package has the schemas of the databases.
const ovnSchemas = "/usr/share/ovn"

// ovnPatience bounds the wait for one of OVN's programs.
const ovnPatience = 60 * time.Second

// ovn is what a node runs of OVN. Databases, sockets, logs and pid files are all in dir,
// and its daemons run in the node's namespace, so that they go with the lab.
type ovn struct {
	ns  netns.NS
	dir string
	ovs string // the folder of the node's Open vSwitch
}

func nodeOVN(self network.Node) ovn {
	return ovn{ns: self.NS, dir: filepath.Join(self.DataDir, "ovn"), ovs: dataplane.OVSDir(self)}
}

// ovnTools is the Debian packages, as a feature of the machine.
func ovnTools() netns.Feature {
	const packages = "apt-get install ovn-central ovn-host"
	return netns.Feature{Name: "ovn-controller", Doc: "networks of OVN", Cure: packages, Probe: func() error {
		for _, program := range []string{"ovn-controller", "ovn-northd", "ovn-nbctl", "ovn-sbctl"} {
			if _, err := exec.LookPath(program); err != nil {
				return fmt.Errorf("%s is not installed: %s", program, packages)
			}
		}
		for _, database := range []string{ovnNorthbound, ovnSouthbound} {
			if _, err := os.Stat(ovnSchema(database)); err != nil {
				return fmt.Errorf("%w: %s", err, packages)
			}
		}
		return nil
	}}
}

func ovnSchema(database string) string {
	return filepath.Join(ovnSchemas, "ovn-"+database+".ovsschema")
}

// ovnVersion is that of the ovn-controller, "OVN 23.03.1".
func ovnVersion(ctx context.Context) (string, error) {
	r := exec.NewRunner()
	defer r.Close()
	got, err := r.Run(ctx, exec.Cmd{Argv: []string{"ovn-controller", "--version"}})
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(got.Stdout), "\n") // "ovn-controller 23.03.1"
	version, ok := strings.CutPrefix(strings.TrimSpace(first), "ovn-controller ")
	if !ok {
		return "", fmt.Errorf("ovn-controller --version said %q: no version in it", first)
	}
	return "OVN " + version, nil
}

// ovnRemote is where nodes find the southbound database: on the lab's link.
func ovnRemote(central netip.Addr) string { return fmt.Sprintf("tcp:%s:%d", central, ovnPort) }

// central starts what runs once in a zone: both databases, and ovn-northd, which makes the
// southbound one of the northbound. It then makes the logical network by topology, which are
// commands of ovn-nbctl. Only the southbound database listens on a port, at address, where
// remote says so.
func (v ovn) central(ctx context.Context, remote string, address netip.Addr, topology []string) error {
	if err := os.MkdirAll(v.dir, 0o755); err != nil {
		return err
	}
	for _, database := range []struct {
		name, ctl string
		remotes   []string
	}{
		{ovnNorthbound, "ovn-nbctl", nil},
		{ovnSouthbound, "ovn-sbctl", []string{"--remote=db:OVN_Southbound,SB_Global,connections"}},
	} {
		file := filepath.Join(v.dir, database.name+".db")
		if _, err := v.run(ctx, "ovsdb-tool", "create", file, ovnSchema(database.name)); err != nil {
			return err
		}
		server := append([]string{"ovsdb-server", file, "--remote=p" + v.remote(database.name)}, database.remotes...)
		if err := v.launch(database.name, server...); err != nil {
			return err
		}
		if err := v.await(ctx, database.ctl, "--db="+v.remote(database.name), "init"); err != nil {
			return v.explain(database.name, err)
		}
	}
	if strings.HasPrefix(remote, "tcp:") {
		// The probe is OVN-Kubernetes': a node that is busy for seconds keeps its connection.
		listen := fmt.Sprintf("ptcp:%d:%s", ovnPort, address)
		if _, err := v.run(ctx, "ovn-sbctl", "--db="+v.remote(ovnSouthbound), "--inactivity-probe=180000", "set-connection", listen); err != nil {
			return v.explain(ovnSouthbound, err)
		}
	}
	if err := v.daemon("ovn-northd", "--ovnnb-db="+v.remote(ovnNorthbound), "--ovnsb-db="+v.remote(ovnSouthbound)); err != nil {
		return err
	}
	if _, err := v.nbctl(ctx, topology...); err != nil {
		return err
	}
	if _, err := v.nbctl(ctx, "--wait=sb", "sync"); err != nil {
		return v.explain("ovn-northd", err)
	}
	return nil
}

// usesDatabases has a node of a zone find the northbound database of the zone's first where
// that one has it.
func (v ovn) usesDatabases(first ovn) error {
	if err := os.MkdirAll(v.dir, 0o755); err != nil {
		return err
	}
	return os.Symlink(first.socket(ovnNorthbound), v.socket(ovnNorthbound))
}

// hasDatabases reports whether a zone's databases are this node's.
func (v ovn) hasDatabases() (bool, error) {
	socket, err := os.Lstat(v.socket(ovnNorthbound))
	if err != nil {
		return false, err
	}
	return socket.Mode()&os.ModeSymlink == 0, nil
}

// socket is a database's, which only this machine's programs reach.
func (v ovn) socket(database string) string { return filepath.Join(v.dir, database+".sock") }

func (v ovn) remote(database string) string { return "unix:" + v.socket(database) }

// nbctl changes the logical network. Commands are divided by "--".
func (v ovn) nbctl(ctx context.Context, args ...string) (string, error) {
	return v.run(ctx, append([]string{"ovn-nbctl", "--db=" + v.remote(ovnNorthbound), fmt.Sprintf("--timeout=%.0f", ovnPatience.Seconds())}, args...)...)
}

// daemon starts one of OVN's daemons in the foreground of a session of its own.
func (v ovn) daemon(program string, args ...string) error {
	if err := os.MkdirAll(v.dir, 0o755); err != nil {
		return err
	}
	return v.launch(program, append([]string{program}, args...)...)
}

// launch starts a daemon whose files have that name. It has nothing of this program's
// environment.
func (v ovn) launch(name string, argv ...string) error {
	file := func(suffix string) string { return filepath.Join(v.dir, name+suffix) }
	log, err := os.Create(file(".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	argv = append(argv, "--pidfile="+file(".pid"), "-vconsole:info", "-vsyslog:off")
	r := exec.NewRunner()
	defer r.Close()
	return r.Detach(exec.Cmd{Argv: argv, NetNS: v.ns.Path, CleanEnv: true, Env: v.env()}, log)
}

// env keeps every file of OVN's and Open vSwitch's in their folders. Whoever uses OVN on
// this machine may have a daemon for ovn-nbctl, which is another OVN's.
func (v ovn) env() []string {
	env := []string{"OVN_NB_DAEMON=", "OVN_SB_DAEMON="}
	for _, name := range []string{"RUNDIR", "LOGDIR", "DBDIR", "SYSCONFDIR"} {
		env = append(env, "OVN_"+name+"="+v.dir, "OVS_"+name+"="+v.ovs)
	}
	return env
}

// run runs one of OVN's programs to its end and gives what it said. Where a daemon has no
// room for one more connection it tries again.
func (v ovn) run(ctx context.Context, argv ...string) (string, error) {
	return v.repeat(ctx, dataplane.OVSBusy, argv...)
}

// await runs a program until the daemon that it asks has its socket.
func (v ovn) await(ctx context.Context, argv ...string) error {
	_, err := v.repeat(ctx, func(err error) bool { return dataplane.OVSSaid(err, "database connection failed") }, argv...)
	return err
}

// repeat runs a program until its error is not one of those to wait for.
func (v ovn) repeat(ctx context.Context, wait func(error) bool, argv ...string) (string, error) {
	return dataplane.Repeat(ctx, ovnPatience, wait, func() exec.Cmd { return exec.Cmd{Argv: argv, Env: v.env()} })
}

// explain adds the end of a daemon's log to an error.
func (v ovn) explain(name string, err error) error {
	return dataplane.OVS{Dir: v.dir}.Explain(name, err)
}
