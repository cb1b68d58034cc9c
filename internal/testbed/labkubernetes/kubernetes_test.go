package labkubernetes

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/image"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/testbed/lab"
)

// TestMain lets the test binary be what a cluster starts of this program, and
// for the test that kills it the owner of one.
func TestMain(m *testing.M) {
	if handled, exit := catalog.RunAsPlugin(os.Args[0], os.Environ()); handled {
		os.Exit(exit)
	}
	if len(os.Args) > 2 {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		var err error
		switch strings.Join(os.Args[1:3], " ") {
		case "agent --wait":
			agent.WaitFor(ctx, nil)
		case "serve name":
			err = serveName(ctx, os.Args[3])
		case "ask name":
			err = askName(ctx, os.Args[3], os.Stdout)
		case "lab hold":
			err = Hold(ctx, os.Args[3], os.Args[4])
		case "lab relay":
			err = Relay(ctx, os.Args[3])
		case "own a-cluster":
			_, err = Up(ctx, options(exec.NewRunner(), os.Args[3]), spec())
		default:
			os.Exit(m.Run())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func options(r *exec.Runner, dir string) Options {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return Options{
		Lab:     lab.Options{Runner: r, CNIPath: cni.SearchPath(""), Verb: "test", Dir: dir},
		BinDirs: BinDirs(""), Self: self, Version: "test", Patience: patient(patience),
	}
}

func spec() Spec {
	return Spec{Name: "test", CNI: "bridge", KubeProxy: "iptables", Link: "unshaped", MTU: 1500, Nodes: 2}
}

// needCluster skips a test where something for a Kubernetes is missing.
func needCluster(t *testing.T) {
	t.Helper()
	labtest.Turn(t, labtest.Clusters)
	labtest.Root(t)
	for _, f := range needs(spec()) {
		labtest.Feature(t, f.Name, f.Probe())
	}
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err == nil && !strings.Contains(string(filesystems), "overlay") {
		err = fmt.Errorf("no overlay in /proc/filesystems")
	}
	labtest.Feature(t, "overlay file systems", err)
	labtest.Tool(t, "etcd", "etcd-server")
	labtest.Tool(t, "containerd", "containerd")
	labtest.Tool(t, "runc", "runc")
	labtest.Tool(t, "conntrack", "conntrack")
	labtest.Tool(t, "/usr/lib/cni/bridge", "containernetworking-plugins")
	c := &Cluster{Spec: spec(), options: options(nil, ""), programs: map[string]string{}}
	if _, err := c.find("kubelet"); err != nil {
		if labtest.CI() {
			t.Fatalf("kubelet is missing in CI: make cluster-binaries (%v)", err)
		}
		t.Skip("no tool kubelet: make cluster-binaries")
	}
	if err := staticTest(); err != nil {
		t.Skipf("the test's program cannot be in an image, run it with CGO_ENABLED=0: %v", err)
	}
}

func staticTest() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = image.Write(io.Discard, image.Spec{Name: image.Name("test", false), Binary: self})
	return err
}

// TestUpRunsPodsAndLeavesNothingInCluster: two nodes, a pod on each, a path between
// them; frozen and thawed; nothing is left afterwards.
func TestUpRunsPodsAndLeavesNothingInCluster(t *testing.T) {
	needCluster(t)
	dir := filepath.Join(t.TempDir(), "state")
	leavesNothing(t, dir, func() []string {
		r := exec.NewRunner()
		defer r.Close()
		o := options(r, dir)
		info, err := Up(t.Context(), o, spec())
		if err != nil {
			t.Fatal(err)
		}
		for _, timing := range info.Kubernetes.Timings {
			t.Logf("%-24s %6.3f s, at %6.3f s", timing.Part, timing.Seconds, timing.EndedAt)
		}
		api := connect(t, info)
		checkPods(t, api, info)
		checkService(t, info)
		checkFrozen(t, api, o)
		if _, err := Up(t.Context(), o, spec()); err == nil || !strings.Contains(err.Error(), "is running already") {
			t.Errorf("a second one of the same name: %v", err)
		}
		gone, err := lab.Down(t.Context(), o.Lab, info.ID)
		if err != nil || gone.Namespaces != 4 {
			t.Errorf("down: %v (%v), want 4 namespaces", gone, err)
		}
		return []string{info.ID}
	})
}

// TestReapAfterKillInCluster kills who brings a cluster up while its programs start.
func TestReapAfterKillInCluster(t *testing.T) {
	needCluster(t)
	dir := filepath.Join(t.TempDir(), "state")
	leavesNothing(t, dir, func() []string {
		r := exec.NewRunner()
		defer r.Close()
		p, err := r.StartPiped(t.Context(), exec.Cmd{Argv: []string{options(nil, "").Self, "own", "a-cluster", dir}})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = bufio.NewScanner(p.Stdout).Scan() }() // says nothing
		id := waitKubelet(t, dir)
		if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("the owner ended with %v", err)
		}
		gone, err := lab.Reap(t.Context(), lab.Options{Runner: r, Dir: dir})
		if err != nil || len(gone) != 1 || gone[0].ID != id || gone[0].Killed < 5 {
			t.Errorf("cleared %v (%v), want %s and its processes", gone, err, id)
		}
		return []string{id}
	})
}

// waitKubelet waits until a cluster has started a kubelet, and gives its lab.
func waitKubelet(t *testing.T, dir string) string {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		labs, err := lab.List(lab.Options{Dir: dir})
		if err != nil || len(labs) != 1 || labs[0].Kubernetes == nil {
			continue
		}
		for _, p := range labs[0].Kubernetes.Programs {
			if p.Name == "kubelet" {
				return labs[0].ID
			}
		}
	}
	t.Fatal("no kubelet was started within two minutes")
	return ""
}

// leavesNothing compares the machine before and after.
func leavesNothing(t *testing.T, dir string, f func() []string) {
	t.Helper()
	labtest.LeavesNothing(t, labtest.Ours{Dir: dir, Program: options(nil, "").Self}, f)
}

// connect is a connection to a cluster that came up.
func connect(t *testing.T, info lab.Info) *kubeclient.Client {
	t.Helper()
	client, err := kubeclient.Connect(info.Kubernetes.Kubeconfig, "")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// checkPods runs a pod on each node, under what Pod Security "restricted" asks,
// and goes from the one's node to the other.
func checkPods(t *testing.T, api *kubeclient.Client, info lab.Info) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const pods = "/api/v1/namespaces/default/pods"
	for _, node := range []string{"node1", "node2"} {
		err := api.Create(ctx, pods, object{
			"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "on-" + node},
			"spec": object{
				"nodeName": node, "dnsPolicy": "Default",
				"containers": []object{{
					"name": "agent", "image": image.Name("test", false), "imagePullPolicy": "Never",
					"securityContext": object{
						"allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": object{"drop": []string{"ALL"}},
						"seccompProfile": object{"type": "RuntimeDefault"},
					},
				}},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, node := range []string{"node1", "node2"} {
		address := waitPod(ctx, t, api, pods+"/on-"+node)
		if want := netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/24", i+1)); !want.Contains(address) {
			t.Errorf("the pod on %s has the address %s, want one of %s", node, address, want)
		}
		other := []string{"node2", "node1"}[i]
		from := netns.Named(fmt.Sprintf("cnb-%s-1-%s", info.ID, other))
		if _, err := netns.Answer(ctx, from, netip.AddrPortFrom(address, 9)); err != nil {
			t.Error(err)
		}
	}
}

// checkService finds the API server's own service where a pod is: on node 1.
func checkService(t *testing.T, info lab.Info) {
	t.Helper()
	pids, err := filepath.Glob("/sys/fs/cgroup/*/cnb-" + info.ID + "-1-kubernetes/pods-node1/kubepods/*/pod*/*/cgroup.procs")
	if err != nil || len(pids) == 0 {
		if pids, err = filepath.Glob("/sys/fs/cgroup/cnb-" + info.ID + "-1-kubernetes/pods-node1/kubepods/*/pod*/*/cgroup.procs"); err != nil || len(pids) == 0 {
			t.Fatalf("no pod's cgroup on node1 (%v)", err)
		}
	}
	data, err := os.ReadFile(pids[0])
	if err != nil || len(strings.Fields(string(data))) == 0 {
		t.Fatalf("no process in %s (%v)", pids[0], err)
	}
	checkWeight(t, info)
	pod := netns.NS{Name: "a pod on node1", Path: "/proc/" + strings.Fields(string(data))[0] + "/ns/net"}
	conn, err := netns.Dial(pod, "10.96.0.1:443")
	if err != nil {
		t.Fatalf("the API server by its service: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// checkWeight: a node's pods weigh as on a machine of their own.
func checkWeight(t *testing.T, info lab.Info) {
	t.Helper()
	for file, want := range map[string]int{"cpu.shares": 1024 * runtime.NumCPU(), "cpu.weight": min(10000, 100*runtime.NumCPU())} {
		var found []string
		for _, top := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
			files, err := filepath.Glob(top + "cnb-" + info.ID + "-1-kubernetes/pods-node1/" + file)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, files...)
		}
		for _, path := range found {
			if data, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(data)) != strconv.Itoa(want) {
				t.Errorf("%s is %s (%v), want %d", path, data, err, want)
			}
		}
	}
}

func waitPod(ctx context.Context, t *testing.T, api *kubeclient.Client, path string) netip.Addr {
	t.Helper()
	var pod struct {
		Status struct{ Phase, PodIP string }
	}
	for ctx.Err() == nil {
		if err := api.Get(ctx, path, &pod); err == nil && pod.Status.Phase == "Running" {
			address, err := netip.ParseAddr(pod.Status.PodIP)
			if err != nil {
				t.Fatal(err)
			}
			return address
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not run: %+v", path, pod)
	return netip.Addr{}
}

// checkFrozen: a frozen cluster takes no processor time and answers nobody; it
// goes on as if nothing had been.
func checkFrozen(t *testing.T, api *kubeclient.Client, o Options) {
	t.Helper()
	if err := lab.SetFrozen(t.Context(), o.Lab, "test", true); err != nil {
		t.Fatal(err)
	}
	labs, err := lab.List(o.Lab)
	if err != nil || len(labs) != 1 || !labs[0].Kubernetes.Frozen {
		t.Errorf("frozen, the list says %+v (%v)", labs, err)
	}
	before := ticks(t, labs)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := api.Get(ctx, "/readyz", nil); err == nil {
		t.Error("a frozen API server answers")
	}
	if after := ticks(t, labs); after != before {
		t.Errorf("its programs took %d ticks of processor time while frozen", after-before)
	}
	if err := lab.SetFrozen(t.Context(), o.Lab, "test", false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := api.Get(ctx, "/readyz", nil); err != nil {
		t.Errorf("after it was frozen: %v", err)
	}
	if err := lab.SetFrozen(t.Context(), o.Lab, "other", true); err == nil || !strings.Contains(err.Error(), "there are [test]") {
		t.Errorf("freezing what does not exist: %v", err)
	}
}

// ticks is the processor time that all programs of a cluster have had.
func ticks(t *testing.T, labs []lab.Info) int {
	t.Helper()
	sum := 0
	for _, p := range labs[0].Kubernetes.Programs {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
		if err != nil {
			t.Fatalf("%s on %s has ended: %v", p.Name, p.Node, err)
		}
		_, fields, _ := strings.Cut(string(data), ") ")
		var user, system int
		if _, err := fmt.Sscan(strings.Join(strings.Fields(fields)[11:13], " "), &user, &system); err != nil {
			t.Fatal(err)
		}
		sum += user + system
	}
	return sum
}
