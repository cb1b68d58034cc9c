package labkubernetes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/image"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// object is one of the API's.
type object = map[string]any

// Cluster is a Kubernetes while it is being made.
type Cluster struct {
	Spec Spec
	// API is the API server, spoken to as cluster admin. It answers from
	// CNI.StartOnce and CNI.StartNode on.
	API *kubeclient.Client

	options  Options
	cni      CNI
	lab      *lab.Kubernetes
	nodes    []*Node
	control  *Node
	pki      *pki
	cgroup   *os.File
	programs map[string]string // paths of binaries by name
	// kubeconfigs are those of the CNI's agents, by their programs' names.
	kubeconfigs map[string]string
	begun       time.Time

	mu      sync.Mutex
	running []*running
}

// Node is a node of a Cluster.
type Node struct {
	network.Node
	// Dir is the node's folder. Its path is the same inside and outside of the
	// node's mounts; it is removed with the cluster.
	Dir string
	// Conf is the folder in which containerd looks for CNI configuration lists.
	Conf string

	holder int // the process that keeps the node's mounts
}

// running is a program that was started.
type running struct {
	node, name, log string
	process         *exec.Detached
}

// Nodes are the nodes with pods.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Control is the node of the control plane, where operators run.
func (c *Cluster) Control() *Node { return c.control }

// Dir is the cluster's folder, the same inside and outside of nodes' mounts.
func (c *Cluster) Dir() string { return c.lab.Dir() }

// Program is the path of a program that CNI.Programs names.
func (c *Cluster) Program(name string) string { return c.programs[name] }

// Plugins is the folder in which containerd looks for CNI plugins.
func (c *Cluster) Plugins() string { return filepath.Join(c.Dir(), "plugins") }

// Start starts a program on a node, in its namespaces, that runs until the
// cluster goes. What it says is in log/NODE-NAME.log of the cluster's folder.
// One that ends while the cluster is being made ends that, with what it said.
func (c *Cluster) Start(n *Node, name string, argv ...string) error {
	_, err := c.launch(n, name, exec.Cmd{Argv: n.inside(argv)})
	return err
}

// inside is a command line that is run in the node's mounts.
func (n *Node) inside(argv []string) []string {
	return append([]string{"nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", n.holder), "--"}, argv...)
}

func (c *Cluster) launch(n *Node, name string, cmd exec.Cmd) (*exec.Detached, error) {
	path := filepath.Join(c.Dir(), "log", n.Name+"-"+name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// Programs look for helpers in PATH: containerd for its shim and runc,
	// kube-proxy for iptables and nft. What a start allocates is mostly kept: to
	// collect it less often takes a fifth of the CPU time off it.
	cmd.CleanEnv = true
	cmd.Env = append(cmd.Env, "PATH="+usualPath, "HOME=/root", "GOGC=400")
	cmd.NetNS, cmd.Cgroup = n.NS.Path, c.cgroup
	p, err := c.options.Lab.Runner.Launch(cmd, log)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = append(c.running, &running{node: n.Name, name: name, log: path, process: p})
	k := c.lab.Recorded()
	k.Programs = append(k.Programs, state.Program{Node: n.Name, Name: name, PID: p.PID, Argv: cmd.Argv})
	return p, c.lab.Save()
}

// run runs a program on a node to its end.
func (c *Cluster) run(ctx context.Context, n *Node, argv ...string) error {
	_, err := c.options.Lab.Runner.Run(ctx, exec.Cmd{Argv: n.inside(argv), NetNS: n.NS.Path, Cgroup: c.cgroup})
	return err
}

// dead is an error where a program has ended.
func (c *Cluster) dead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.running {
		select {
		case <-r.process.Ended:
			if r.process.Err == nil {
				return fmt.Errorf("%s on %s ended, with status 0", r.name, r.node)
			}
			return fmt.Errorf("%s on %s ended: %w", r.name, r.node, r.process.Err)
		default:
		}
	}
	return nil
}

// wait tries until it is done, a program has ended or the context is over. Each
// try is short of time to answer at once; what has no events to watch is asked
// again after 20 ms.
func (c *Cluster) wait(ctx context.Context, what string, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		if dead := c.dead(); dead != nil {
			return fmt.Errorf("waiting for %s: %w", what, dead)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (at last: %w)", what, context.Cause(ctx), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// explain adds to an error what the programs that ended said last, or all of
// them where none did.
func (c *Cluster) explain(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var texts []string
	for _, r := range c.running {
		select {
		case <-r.process.Ended:
			texts = append(texts, fmt.Sprintf("%s on %s said at last:\n%s", r.name, r.node, lastLines(r.log, 5)))
		default:
		}
	}
	if len(texts) == 0 {
		return err
	}
	said := strings.Join(texts, "\n")
	if strings.Contains(said, "too many open files") { // EMFILE of inotify_init
		said += "\n(each Kubernetes takes some of the machine's inotify instances: cnibench lab down for one that is not needed, or sysctl -w fs.inotify.max_user_instances=1024)"
	}
	return fmt.Errorf("%w\n%s", err, said)
}

// lastLines is the end of a file.
func lastLines(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "  " + err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-n):], "\n  ")
}

// timed runs one part and notes how long it took.
func (c *Cluster) timed(part string, f func() error) error {
	begin := time.Now()
	err := f()
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.lab.Recorded()
	k.Timings = append(k.Timings, state.Timing{
		Part: part, Seconds: round(time.Since(begin)), EndedAt: round(time.Since(c.begun)),
	})
	return nil
}

func round(d time.Duration) float64 { return float64(d.Round(time.Millisecond).Milliseconds()) / 1e3 }

// needs are the kernel features of every Kubernetes in a lab.
func needs(s Spec) []netns.Feature {
	all := []netns.Feature{netns.Veth(), netns.Bridge(), netns.Cgroup2()}
	switch s.KubeProxy {
	case "iptables":
		all = append(all, iptablesKernel(), netns.Conntrack())
	case "nftables":
		all = append(all, netns.NFTables(), netns.Conntrack())
	}
	if s.IPv6 {
		all = append(all, netns.IPv6())
	}
	return all
}

// prepare makes the namespaces, the folders, the certificates and the processes
// that keep the nodes' mounts.
func (c *Cluster) prepare(ctx context.Context) error {
	if err := c.lab.Wire(ctx); err != nil {
		return err
	}
	for _, dir := range []string{"log", "pki"} {
		if err := os.MkdirAll(filepath.Join(c.Dir(), dir), 0o700); err != nil {
			return err
		}
	}
	if err := c.makeCgroups(); err != nil {
		return err
	}
	var err error
	if c.pki, err = c.newPKI(); err != nil {
		return err
	}
	if err := c.linkPlugins(); err != nil {
		return err
	}
	for _, n := range c.lab.Nodes {
		c.nodes = append(c.nodes, &Node{Node: n, Dir: n.DataDir, Conf: filepath.Join(n.DataDir, "net.d")})
	}
	c.control = &Node{Node: c.lab.Control, Dir: c.lab.Control.DataDir}
	var errs []error
	for _, n := range append([]*Node{c.control}, c.nodes...) {
		errs = append(errs, c.hold(ctx, n))
	}
	return errors.Join(errs...)
}

// makeCgroups makes the cgroup of all of the cluster's programs, and next to it
// one for each node's pods: a cgroup of version 2 has either processes or
// cgroups. A kubelet wants its own in every hierarchy.
func (c *Cluster) makeCgroups() error {
	root, err := netns.CgroupRoot()
	if err != nil {
		return err
	}
	programs := filepath.Join(root, c.lab.Cgroup(), "programs")
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	roots, err := netns.CgroupRoots()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := passOn(filepath.Join(root, c.lab.Cgroup())); err != nil {
			return err
		}
		for _, n := range c.lab.Nodes {
			pods := filepath.Join(root, c.podsCgroup(n.Name))
			if err := os.MkdirAll(pods, 0o755); err != nil {
				return fmt.Errorf("cgroup: %w", err)
			}
			if err := weigh(pods, 1); err != nil {
				return err
			}
		}
		if err := weigh(filepath.Join(root, c.lab.Cgroup()), len(c.lab.Nodes)); err != nil {
			return err
		}
	}
	c.cgroup, err = os.Open(programs)
	return errors.Join(err, c.allowAlgorithms(filepath.Dir(programs)))
}

// allowAlgorithms lets the cluster's pods set any congestion control, as a lab's ends can.
// A kernel that cannot do that leaves them those that the machine allows.
func (c *Cluster) allowAlgorithms(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	defer dir.Close() // nothing was written
	c.lab.Recorded().Algorithms = netns.AllowCongestionControls(dir) == nil
	return nil
}

// passOn lets the cgroups in one of version 2 use all controllers that it may use: a kubelet
// ends where its pods' cgroup lacks one. Hierarchies of version 1 have one controller each.
func passOn(dir string) error {
	may, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	var all []string
	for _, controller := range strings.Fields(string(may)) {
		all = append(all, "+"+controller)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(strings.Join(all, " ")), 0o644); err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	return nil
}

// weigh gives the cgroup of some nodes' pods the weight that a kubelet gives to those
// of a machine of its own: 1024 shares a core (version 2: the default weight a core).
// Else all pods of a cluster would weigh as one process of this machine.
func weigh(dir string, nodes int) error {
	cores := nodes * runtime.NumCPU()
	for file, weight := range map[string]int{"cpu.shares": min(262144, 1024*cores), "cpu.weight": min(10000, 100*cores)} {
		path := filepath.Join(dir, file)
		if _, err := os.Stat(path); err != nil {
			continue // another hierarchy's, or one without the controller
		}
		if err := os.WriteFile(path, []byte(strconv.Itoa(weight)), 0o644); err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
	}
	return nil
}

// podsCgroup is the path of the cgroup of a node's pods in every hierarchy.
func (c *Cluster) podsCgroup(node string) string { return "/" + c.lab.Cgroup() + "/pods-" + node }

// writeImage writes the image of this program for the nodes' containerd.
func (c *Cluster) writeImage(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = image.Write(f, image.Spec{Name: c.imageName(), Binary: c.options.Self, Files: c.options.Tools})
	return errors.Join(err, f.Close())
}

func (c *Cluster) imageName() string { return image.Name(c.options.Version, false) }

// serviceCIDRs is the range of services' addresses, of each family.
func (c *Cluster) serviceCIDRs() string {
	if c.Spec.IPv6 {
		return network.ServiceRange().String() + "," + serviceRange6().String()
	}
	return network.ServiceRange().String()
}

// podCIDRs is that of pods.
func (c *Cluster) podCIDRs() string {
	if c.Spec.IPv6 {
		return network.Pods().String() + "," + network.Pods6().String()
	}
	return network.Pods().String()
}

// serviceRange6 is that of services' addresses of IPv6.
func serviceRange6() netip.Prefix { return netip.MustParsePrefix("fd00:10:96::/112") }

// usualPath is where distributions have what nodes' programs call.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
