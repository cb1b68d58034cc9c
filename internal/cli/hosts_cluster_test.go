package cli_test

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/result"
)

// newNodesFarm is a farm whose client and server are the nodes of a lab's
// Kubernetes, with sshd in them and in the control plane's node.
func newNodesFarm(t *testing.T) *farm {
	t.Helper()
	needsCluster(t)
	f := openFarm(t)
	f.nodes = true
	f.addresses = map[string]string{"client": "198.18.0.1", "server": "198.18.0.2", "control_plane": "198.18.0.254"}
	f.namespaces(map[string]string{"node1": "client", "node2": "server", "control-plane": "control_plane"},
		"lab", "up", "--kubernetes", "--nodes", "2", "--mtu", "1500", "--kubeconfig", f.path("kubeconfig"))
	f.ns["control"] = f.ns["control_plane"]
	f.write("kubeconfig-of-nodes", regexp.MustCompile(`server: .*`).ReplaceAllString(f.read("kubeconfig"), "server: https://198.18.0.254:6443"))
	f.startAll()
	return f
}

// left are the namespaces of runs that exist in the farm's cluster.
func (f *farm) left() (names []string) {
	f.t.Helper()
	client, err := kubeclient.Connect(f.path("kubeconfig"), "")
	if err != nil {
		f.t.Fatal(err)
	}
	list, err := client.API.CoreV1().Namespaces().List(f.t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=cnibench"})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, ns := range list.Items {
		names = append(names, ns.Name)
	}
	return names
}

// TestHostsOfAClusterInCluster: hosts that are nodes of a real Kubernetes are tuned
// over SSH, and its pods are measured in the same run. After a kill reset puts back the
// hosts and clears the cluster.
func TestHostsOfAClusterInCluster(t *testing.T) {
	t.Parallel()
	f := newNodesFarm(t)
	asBefore := f.before()
	f.write("c.yaml", `name: nodes
testbed: hosts
networks: [host, detected]
profiles: [kernel_optimizations]
workloads: [{name: tcp_rr, message_bytes: [64]}]
sampling: {slices: 8, warmup_seconds: 0.05, explain_seconds: 0.1, min_blocks: 200, max_blocks: 200, retries: 0}
`)
	p, err := f.runner.StartPiped(context.Background(), f.command("run", "c.yaml", "--inventory", f.inventory, "--out", "r"))
	if err != nil {
		t.Fatal(err)
	}
	// A sample of a busy machine may fail, so more than two blocks.
	f.until("records", func() bool {
		lines, _ := os.ReadFile(f.path("r/samples.jsonl"))
		return bytes.Count(lines, []byte("\n")) >= 8
	})
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	f.checkNodes()
	if names := f.left(); f.sack("server") != "0" || len(names) == 0 {
		t.Errorf("nothing is left to be repaired: tcp_sack %s, %v", f.sack("server"), names)
	}
	if _, stderr, err := f.run("hosts", "reset", "--inventory", f.inventory); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	if names := f.left(); len(names) > 0 {
		t.Errorf("left in the cluster after reset: %v", names)
	}
	asBefore()
}

// checkNodes looks at the records of a run on nodes.
func (f *farm) checkNodes() {
	t := f.t
	if out, stderr, err := f.run("report", "r"); err != nil || !strings.Contains(out, "bridge") {
		t.Errorf("the report has no bridge: %v\n%s%s", err, out, stderr)
	}
	rec, err := result.Read(f.path("r"))
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]int{}
	for _, s := range rec.Samples {
		if s.Status != result.StatusOK {
			t.Logf("%s %s %s: %s", s.ID, s.Cell.Network, s.Status, s.Reason)
			continue
		}
		measured[s.Cell.Network]++
		want, doubt := "1", strings.Contains(strings.Join(s.Warnings, "\n"), "a pod has it for itself")
		if s.Cell.IsBaseline() {
			want = "0"
		}
		if got := s.Settings[result.ServerNode]["net.ipv4.tcp_sack"]; got != want {
			t.Errorf("%s: tcp_sack is %s, want %s", s.Cell.Network, got, want)
		}
		if doubt == s.Cell.IsBaseline() {
			t.Errorf("%s: warnings %q", s.Cell.Network, s.Warnings)
		}
	}
	if measured["host"] < 2 || measured["bridge"] < 2 {
		t.Errorf("measured: %v", measured)
	}
	if rec.Environment.Clusters["cluster"].Network != "bridge" || len(rec.Environment.Places) < 4 {
		t.Errorf("environment: %+v", rec.Environment)
	}
}
