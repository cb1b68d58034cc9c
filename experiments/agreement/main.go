// Command agreement measures the same cells in the lab's networks of namespaces and
// in the lab's Kubernetes, in the same blocks, and shows whether the efficiencies of
// both agree within 3 %. Both ends run on one CPU and under one congestion control, in
// slices, so that the networks alone can differ.
//
//	go run ./experiments/agreement        # a quarter of an hour; needs root and make cluster-binaries
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/image"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/scratch"
	"github.com/cnibench/cnibench/internal/testbed/cluster"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/testbed/labkubernetes"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

// imageVersion is the tag of the image in the clusters' nodes.
const imageVersion = "agreement"

func main() {
	// Plugins that are this project's own are links to this program.
	if handled, exit := catalog.RunAsPlugin(os.Args[0], os.Environ()); handled {
		os.Exit(exit)
	}
	if len(os.Args) == 4 && os.Args[1] == deepVerb {
		fmt.Fprintln(os.Stderr, "experiments/agreement:", deep(os.Args[2], os.Args[3])) // it came back, so it failed
		os.Exit(1)
	}
	blocks := flag.Int("blocks", 12, "how often each cell is measured")
	slices := flag.Int("slices", 15, "slices of each sample")
	seed := flag.Uint64("seed", 1, "of the order inside blocks")
	only := flag.String("only", "", "a regular expression: pairs whose line of the table has none of it are not measured")
	confined := flag.Bool("seccomp", false, "the clusters' pods have the runtime's seccomp filter, as usual; the lab's agents have none")
	rules := flag.String("rules", "", "the cluster whose nodes' rules are loaded into the lab's nodes, such as bridge; \"\": none")
	flag.Parse()
	asked, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "experiments/agreement: -only:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err = run(ctx, pairs(asked), campaign.Sampling{SliceSeconds: 0.02, Slices: *slices, MinBlocks: *blocks, MaxBlocks: *blocks, Retries: 1}, setting{*seed, !*confined, *rules})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "experiments/agreement:", err)
		os.Exit(1)
	}
}

// setting is what holds for a whole run.
type setting struct {
	seed       uint64 // of the order inside blocks
	unconfined bool   // pods have no seccomp filter, as the lab's agents
	rules      string // the cluster whose nodes' rules the lab's nodes get, "": none
}

func run(ctx context.Context, pairs []pair, sampling campaign.Sampling, how setting) (err error) {
	if len(pairs) == 0 {
		return errors.New("-only leaves nothing: its lines are like \"flannel/vxlan flannel pod-to-pod tcp_stream 1472 B\"")
	}
	specs := needed(pairs)
	dir, remove, err := scratch.Fresh("cnb-agreement-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r := exec.NewRunner()
	defer r.Close()
	program := filepath.Join(dir, "cnibench") // static, as it is in the pods' image
	if _, err := r.Run(ctx, exec.Cmd{Argv: []string{"env", "CGO_ENABLED=0", "go", "build", "-o", program, "."}}); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cgroups := filepath.Base(dir)
	defer func() { err = errors.Join(err, removeDeep(cgroups)) }()
	labs := lab.Options{
		Runner: r, Agent: []string{self, deepVerb, cgroups, program}, CNIPath: cni.SearchPath(""), Verb: "bench-agreement", Dir: filepath.Join(dir, "labs"),
		SetsAlgorithm: workload.SetsCongestionControl,
	}
	named, err := up(ctx, labs, specs, program, dir)
	defer func() { err = errors.Join(err, down(context.WithoutCancel(ctx), labs)) }()
	if err != nil {
		return err
	}
	kube, err := cluster.Open(cluster.Options{
		Clusters: named, Image: image.Name(imageVersion, false), Connect: kubeclient.Connect, Patience: cluster.Patience, Say: say,
		Unconfined: how.unconfined,
	})
	if err != nil {
		return err
	}
	cells, kept := cellsOf(pairs), &memory{}
	if _, err := kube.Prepare(ctx, inClusters(cells)); err != nil {
		return err
	}
	_, err = bench.Run(ctx, bench.Options{
		Sampling: sampling, Testbed: &both{lab: lab.New(labs), kube: kube, labs: labs, clusters: specs, rules: how.rules}, Store: kept, Observer: observer{},
		Plan: plan.Plan{
			Schema: plan.Schema, Seed: how.seed, Cells: cells, MinBlocks: sampling.MinBlocks, MaxBlocks: sampling.MaxBlocks,
			SliceSeconds: sampling.SliceSeconds,
		},
		WithoutProbes: []string{"stacks"},
	})
	if err != nil {
		return err
	}
	writeTables(os.Stdout, pairs, kept.samples)
	return nil
}

// up brings the clusters up, all at the same time.
func up(ctx context.Context, labs lab.Options, specs []labkubernetes.Spec, program, dir string) ([]campaign.Cluster, error) {
	var named []campaign.Cluster
	g, ctx := errgroup.WithContext(ctx)
	for _, c := range specs {
		o := labkubernetes.Options{
			Lab: labs, BinDirs: labkubernetes.BinDirs(""), Self: program, Version: imageVersion, Kubeconfig: filepath.Join(dir, c.Name+".kubeconfig"),
		}
		named = append(named, campaign.Cluster{Name: c.Name, Kubeconfig: o.Kubeconfig})
		g.Go(func() error {
			if _, err := labkubernetes.Up(ctx, o, c); err != nil || c.Name != bare {
				return err
			}
			return strip(ctx, labs, c.Name)
		})
	}
	return named, g.Wait()
}

// down takes the clusters down.
func down(ctx context.Context, labs lab.Options) error {
	all, err := lab.List(labs)
	for _, l := range all {
		_, downErr := lab.Down(ctx, labs, l.ID)
		err = errors.Join(err, downErr)
	}
	return err
}

// clusters are those that are compared with the lab. The name says what a cell's
// lab network is, before the plus, and what carries services out.
func clusters() []labkubernetes.Spec {
	one := func(name, cni, proxy string) labkubernetes.Spec {
		return labkubernetes.Spec{Name: name, CNI: cni, KubeProxy: proxy, Link: "unshaped", MTU: 1500, Nodes: 2}
	}
	return []labkubernetes.Spec{
		one("bridge", "bridge", "none"), one(bare, "bridge", "none"), one("bridge-iptables", "bridge", "iptables"),
		one("flannel", "flannel/vxlan", "none"), one("flannel-nftables", "flannel/vxlan", "nftables"),
		one("flannel-host-gw", "flannel/host-gw", "none"), one("cilium", "cilium/native", "none"), one("cilium-vxlan", "cilium/vxlan", "none"),
	}
}

// bare is a cluster like bridge whose kubelets' rules are taken away once it is up.
const bare = "bridge-bare"

// strip empties the kubelets' chain of a cluster's nodes. It is the only one there that
// asks for a packet's state, so the kernel stops tracking connections with it. A
// kubelet writes its rules again when its chains are gone, not their rules.
func strip(ctx context.Context, labs lab.Options, cluster string) error {
	all, err := lab.List(labs)
	for _, p := range nodes(all, func(l lab.Info) bool { return l.Kubernetes != nil && l.Kubernetes.Name == cluster }) {
		_, stripErr := labs.Runner.Run(ctx, exec.Cmd{Argv: []string{"iptables", "-w", "-F", "KUBE-FIREWALL"}, NetNS: netns.Named(p.Namespace).Path})
		err = errors.Join(err, stripErr)
	}
	return err
}

// pair is one cell in the lab and in a cluster.
type pair struct{ lab, kube result.Cell }

func (p pair) String() string {
	return strings.Join([]string{p.lab.Network, p.kube.Cluster, p.kube.Path, p.kube.Traffic()}, " ")
}

// needed are the clusters of pairs.
func needed(pairs []pair) []labkubernetes.Spec {
	return slices.DeleteFunc(clusters(), func(c labkubernetes.Spec) bool {
		return !slices.ContainsFunc(pairs, func(p pair) bool { return p.kube.Cluster == c.Name })
	})
}

// tracked is the lab's network bridge on nodes that track connections, as those with
// a kubelet do.
const tracked = result.LadderPrefix + "bridge-conntrack"

// closer is the lab's network that does what a cluster's nodes do and the network of the
// same name does not: connection tracking, which a kubelet's rules switch on, and which
// Cilium's agents do with a lookup of policy for each packet. "" where there is none.
func closer(c labkubernetes.Spec) string {
	switch {
	case c.Name == "bridge":
		return tracked
	case strings.HasPrefix(c.CNI, "cilium/"):
		return c.CNI + "-policy"
	}
	return ""
}

// pairs are what is compared: pods straight, and by a service where the cluster has
// a proxy; and two networks of the lab with the same cluster where one of them is closer to
// what the cluster does.
func pairs(asked *regexp.Regexp) (all []pair) {
	add := func(p pair) {
		if asked.MatchString(p.String()) {
			all = append(all, p)
		}
	}
	for _, c := range clusters() {
		for _, w := range []struct {
			name  string
			bytes int
		}{{traffic.TCPStream, 1472}, {traffic.TCPRR, 64}, {traffic.UDPStream, 1400}} {
			in := result.Cell{
				Network: c.CNI, Path: result.PathPodToPod, Placement: result.InterHost, Link: c.Link, Profile: result.DefaultProfile, MTU: c.MTU,
				Workload: w.name, MessageBytes: w.bytes, Streams: 1, CPUs: result.CPUsSame,
			}
			if w.name != traffic.UDPStream {
				in.CongestionControl = "cubic"
			}
			p := pair{lab: in, kube: in}
			p.kube.Cluster = c.Name
			add(p)
			if other := closer(c); other != "" {
				p.lab.Network = other
				add(p)
			}
			if c.KubeProxy != "none" {
				p.lab.Path, p.kube.Path = result.PathPodToClusterIP, result.PathPodToClusterIP
				p.lab.Services, p.lab.ServiceProxy = 1, c.KubeProxy
				add(p)
			}
		}
	}
	return all
}

// cellsOf are the cells of all pairs with their baselines, each once.
func cellsOf(pairs []pair) (all []result.Cell) {
	seen := map[result.Cell]bool{}
	for _, p := range pairs {
		for _, c := range []result.Cell{p.lab, p.lab.Baseline(), p.kube, p.kube.Baseline()} {
			if !seen[c] {
				seen[c] = true
				all = append(all, c)
			}
		}
	}
	return all
}

func inClusters(cells []result.Cell) (out []result.Cell) {
	for _, c := range cells {
		if c.Cluster != "" {
			out = append(out, c)
		}
	}
	return out
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
