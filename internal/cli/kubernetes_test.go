package cli_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/labkubernetes"
)

// clusters is a folder with examples/kubernetes.yaml and the clusters that it
// names, in a lab.
type clusters struct {
	t      *testing.T
	runner *exec.Runner
	work   string
}

// upCommands are the commands of the example's own comment, in its folder.
func upCommands(t *testing.T, example string) (all [][]string) {
	t.Helper()
	for line := range strings.Lines(example) {
		words := strings.Fields(strings.TrimPrefix(line, "#"))
		if len(words) > 3 && words[0] == "cnibench" {
			all = append(all, words[1:])
		}
	}
	if len(all) < 2 {
		t.Fatalf("the example has %d commands", len(all))
	}
	return all
}

// needsCluster skips without what a lab's Kubernetes needs.
func needsCluster(t *testing.T) {
	t.Helper()
	labtest.Turn(t, labtest.Clusters)
	labtest.Root(t)
	for tool, debianPackage := range map[string]string{"etcd": "etcd-server", "containerd": "containerd", "runc": "runc",
		"conntrack": "conntrack", "nft": "nftables", "iptables": "iptables"} {
		labtest.Tool(t, tool, debianPackage)
	}
	for _, program := range []string{"kubelet", "cnibench-flanneld"} {
		labtest.Built(t, filepath.Join(labkubernetes.BinDirs("")[0], program))
	}
}

func newClusters(t *testing.T) *clusters {
	t.Helper()
	needsCluster(t)
	c := &clusters{t: t, runner: exec.NewRunner(), work: t.TempDir()}
	t.Cleanup(c.runner.Close)
	if err := os.Mkdir(filepath.Join(c.work, "examples"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the test's own context has ended by then
		if _, err := c.runner.Run(context.Background(), c.command("lab", "down", "--all")); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *clusters) command(args ...string) exec.Cmd {
	return exec.Cmd{Argv: append([]string{filepath.Join(built, "cnibench")}, args...), Dir: c.work,
		Env: []string{"CNIBENCH_STATE_DIR=" + filepath.Join(c.work, "labs"), "LC_ALL=C.UTF-8"}}
}

func (c *clusters) run(args ...string) string {
	c.t.Helper()
	res, err := c.runner.Run(c.t.Context(), c.command(args...))
	if err != nil {
		c.t.Fatalf("cnibench %s: %v\n%s", strings.Join(args, " "), err, res.Stderr)
	}
	return string(res.Stdout)
}

// runAll runs commands at the same time, and ends when all have.
func (c *clusters) runAll(commands [][]string) {
	c.t.Helper()
	var running sync.WaitGroup
	for _, args := range commands {
		running.Go(func() {
			if res, err := c.runner.Run(c.t.Context(), c.command(args...)); err != nil {
				c.t.Errorf("cnibench %s: %v\n%s", strings.Join(args, " "), err, res.Stderr)
			}
		})
	}
	running.Wait()
	if c.t.Failed() {
		c.t.FailNow()
	}
}

// left are the namespaces of runs that are still in a cluster, and the pods and leases in
// the namespace that an administrator made from what rbac prints, which stays.
func (c *clusters) left(name string) (names []string) {
	c.t.Helper()
	client, err := kubeclient.Connect(filepath.Join(c.work, "examples", name+".kubeconfig"), "")
	if err != nil {
		c.t.Fatal(err)
	}
	list, err := client.API.CoreV1().Namespaces().List(c.t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=cnibench"})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, ns := range list.Items {
		if ns.Name != kubeclient.OwnNamespace {
			names = append(names, ns.Name)
		}
	}
	pods, podsErr := client.API.CoreV1().Pods(kubeclient.OwnNamespace).List(c.t.Context(), metav1.ListOptions{})
	leases, leasesErr := client.API.CoordinationV1().Leases(kubeclient.OwnNamespace).List(c.t.Context(), metav1.ListOptions{})
	if err := errors.Join(podsErr, leasesErr); err != nil {
		c.t.Fatal(err)
	}
	for _, pod := range pods.Items {
		names = append(names, "pod "+pod.Name)
	}
	for _, lease := range leases.Items {
		names = append(names, "lease "+lease.Name)
	}
	return names
}

func (c *clusters) write(name, campaign string) string {
	c.t.Helper()
	path := filepath.Join(c.work, "examples", name)
	if err := os.WriteFile(path, []byte(campaign), 0o644); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// withoutMissing gives the example, and the network of each of its clusters. Where Cilium's
// programs are not built, it is without that cluster, and a skipped subtest says so.
func (c *clusters) withoutMissing(example string) (text string, networks map[string]string) {
	c.t.Helper()
	networks = map[string]string{"bridge": "bridge", "flannel": "flannel/vxlan", "cilium": "cilium/native"}
	missing := true
	c.t.Run("cilium", func(t *testing.T) {
		labtest.Built(t, filepath.Join(labkubernetes.BinDirs("")[0], "cilium-agent"))
		missing = false
	})
	if !missing {
		return example, networks
	}
	delete(networks, "cilium")
	for line := range strings.Lines(example) {
		if !strings.Contains(line, "cilium") {
			text += line
		}
	}
	return text, networks
}

// TestKubernetesExampleInCluster runs examples/kubernetes.yaml, in short samples, as its own
// comment says: three clusters side by side, each named in the report by the
// network that was found in it. A run that is killed is cleaned up and resumed.
func TestKubernetesExampleInCluster(t *testing.T) {
	t.Parallel()
	c := newClusters(t)
	example, err := os.ReadFile("../../examples/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, want := c.withoutMissing(string(example))
	c.runAll(upCommands(t, text))
	c.oneCommand()
	begin, _, _ := strings.Cut(text, "sampling:")
	c.write("k.yaml", begin+"sampling: {slices: 8, seconds: 0.1, warmup_seconds: 0.05, explain_seconds: 0.1, min_blocks: 2, max_blocks: 2, retries: 3}\n")
	report := c.run("run", "examples/k.yaml", "--out", "r", "--seed", "1")
	recorded, err := result.Read(filepath.Join(c.work, "r"))
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]int{}
	for _, s := range recorded.Samples {
		if !s.Cell.IsBaseline() && s.Cell.Network != want[s.Cell.Cluster] {
			t.Errorf("cluster %s has network %s", s.Cell.Cluster, s.Cell.Network)
		}
		if s.Status == result.StatusOK {
			measured[s.Cell.Cluster]++
		}
		if tcp := strings.HasPrefix(s.Cell.Workload, "tcp_"); tcp && s.Cell.CongestionControl != "cubic" {
			t.Errorf("%s of %s runs under %q, want cubic as in a lab", s.Cell.Workload, s.Cell.Cluster, s.Cell.CongestionControl)
		}
	}
	for name, place := range recorded.Environment.Places {
		if p := place.PodStart; p == nil || p.ScheduledSeconds == nil || p.NetworkSeconds == nil || p.StartedSeconds == nil || *p.StartedSeconds < *p.ScheduledSeconds {
			t.Errorf("%s: its pod's start is %+v", name, p)
		}
	}
	for cluster, network := range want {
		if measured[cluster] != 2*18 { // 2 paths and a baseline, 2 placements, 3 workloads
			t.Errorf("cluster %s: %d samples of 36 were measured", cluster, measured[cluster])
		}
		if !strings.Contains(report, network) {
			t.Errorf("the report has no %s:\n%s", network, report)
		}
		if names := c.left(cluster); len(names) > 0 {
			t.Errorf("cluster %s: left: %v", cluster, names)
		}
	}
	c.adds(want)
	c.killed()
	c.rights()
	c.job()
	c.restarted()
}

// adds is a run that adds pods to clusters, and reads the memory of their networks' agents.
func (c *clusters) adds(networks map[string]string) {
	t := c.t
	text := "name: adds\ntestbed: kubernetes\nclusters:\n"
	networks = maps.Clone(networks)
	delete(networks, "bridge") // without agents
	for name, network := range networks {
		text += fmt.Sprintf("  - {name: %s, kubeconfig: ./%s.kubeconfig, network: %s}\n", name, name, network)
	}
	c.write("adds.yaml", text+`workloads: [{name: pod_setup, pods: [1, 12]}, {name: tcp_rr, message_bytes: [64]}]
sampling: {slices: 8, seconds: 0.1, warmup_seconds: 0.05, explain_seconds: 0.1, explain_every: 1, min_blocks: 2, max_blocks: 2}
`)
	c.run("run", "examples/adds.yaml", "--out", "adds")
	recorded, err := result.Read(filepath.Join(c.work, "adds"))
	if err != nil {
		t.Fatal(err)
	}
	added := map[string]int{}
	for _, s := range recorded.Samples {
		of := s.Cell.Network + " of " + s.Cell.Cluster
		if s.Status != result.StatusOK {
			t.Errorf("%s: %s", of, s.Reason)
			continue
		}
		if s.Cell.Workload != result.PodSetupName {
			processes, held := s.Probes[result.ServerNode]["network_processes"], s.Probes[result.ServerNode]["network_resident_bytes"]
			if s.Cell.IsBaseline() != (held == 0) || held > 0 && (processes != 1 || held < 10<<20) {
				t.Errorf("%s: the agents are %g processes of %g bytes", of, processes, held)
			}
			continue
		}
		added[of]++
		m := s.Metrics
		if m["pod_started_mean_seconds"] <= 0 || m["pod_ready_mean_seconds"] <= m["pod_started_mean_seconds"] || m["pod_ready_max_seconds"] < m["pod_ready_mean_seconds"] {
			t.Errorf("%s, %d pods: %v", of, s.Cell.Pods, m)
		}
	}
	for name, network := range networks {
		for _, of := range []string{network + " of " + name, "host of " + name} {
			if added[of] != 2*2 { // 1 and 12 pods, two blocks
				t.Errorf("%s: %d samples of 4 added pods", of, added[of])
			}
		}
		if names := c.left(name); len(names) > 0 {
			t.Errorf("cluster %s: left: %v", name, names)
		}
	}
}

// begin starts a run of so many blocks of round trips on the cluster bridge, and gives
// its arguments too.
func (c *clusters) begin(name string, blocks int) (p *exec.Process, args []string) {
	c.t.Helper()
	c.write(name+".yaml", fmt.Sprintf(`name: %s
testbed: kubernetes
workloads: [{name: tcp_rr, message_bytes: [64]}]
sampling: {slices: 8, seconds: 0.1, warmup_seconds: 0.05, explain_seconds: 0.1, min_blocks: %d, max_blocks: %d}
`, name, blocks, blocks))
	args = []string{"run", "examples/" + name + ".yaml", "--kubeconfig", "examples/bridge.kubeconfig", "--out", name}
	p, err := c.runner.StartPiped(c.t.Context(), c.command(args...))
	if err != nil {
		c.t.Fatal(err)
	}
	return p, args
}

// killed is a run that is killed, cleaned up after, and resumed.
func (c *clusters) killed() {
	t := c.t
	p, args := c.begin("one", 5)
	c.sampled("one", 1, "measured", measured)
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	_ = p.Wait() // it was killed
	if names := c.left("bridge"); len(names) != 2 {
		t.Errorf("the run that was killed left %v: the test has nothing to clean", names)
	}
	if out := c.run("clean", "--kubeconfig", "examples/bridge.kubeconfig"); strings.Count(out, "deleted namespace") != 2 {
		t.Errorf("clean: %s", out)
	}
	c.run(append(slices.Clone(args), "--resume")...)
	if recorded, err := result.Read(filepath.Join(c.work, "one")); err != nil || len(recorded.Samples) < 10 {
		t.Errorf("%d records after the resumed run, %v", len(recorded.Samples), err)
	}
	if names := c.left("bridge"); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}
