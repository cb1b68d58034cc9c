package labkubernetes

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/image"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/onwire"
	"github.com/cnibench/cnibench/internal/labtest/vm"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/testbed/lab"
)

// namePort is where serveName is in every pod.
const namePort = 8080

// serveName answers whoever connects with a name, until the context is over.
func serveName(ctx context.Context, name string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf(":%d", namePort))
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := io.WriteString(conn, name); err != nil {
			return err
		}
		if err := conn.Close(); err != nil {
			return err
		}
	}
}

// askName writes the name that an address serves.
func askName(ctx context.Context, address string, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = io.Copy(to, conn)
	return err
}

// agentTest is a CNI with an agent of its own, and what it leaves in the API.
type agentTest struct {
	cni, proxy            string
	configMap, says, node string
	// wire is how the tunnel begins that packets between pods of two nodes are in; "" for none.
	wire string
	long bool // only by make test-all: a start takes half a minute of CI
	// kernel boots one that has what the kernel of CI lacks for it; nil where that lacks nothing.
	kernel func(testing.TB) vm.Machine
}

// agentTests has every CNI whose agents are the vendor's own. Cilium's modes that are left to
// make test-all are verified at each start like the others.
func agentTests() []agentTest {
	const flannel, cilium = "kube-flannel/configmaps/kube-flannel-cfg", "kube-system/configmaps/cilium-config"
	const backend = `"flannel.alpha.coreos.com/backend-type":`
	return []agentTest{
		{"flannel/vxlan", "nftables", flannel, `\"Type\": \"vxlan\"`, backend + `"vxlan"`, "vxlan 8472 1", false, nil},
		{"flannel/host-gw", "iptables", flannel, `\"Type\": \"host-gw\"`, backend + `"host-gw"`, "", false, nil},
		{"flannel/ipip", "nftables", flannel, `\"Type\": \"ipip\"`, backend + `"ipip"`, "ipip", false, vm.ForTests},
		{"flannel/wireguard", "iptables", flannel, `\"Type\": \"wireguard\"`, backend + `"wireguard"`, "wireguard", false, vm.ForTests},
		{"cilium/native", "none", cilium, `"routing-mode":"native"`, "", "", false, nil},
		{"cilium/vxlan", "iptables", cilium, `"routing-mode":"tunnel"`, "", "vxlan 8472 ", false, nil},
		{"cilium/geneve", "none", cilium, `"tunnel-protocol":"geneve"`, "", "geneve ", false, vm.ForTests},
		{"cilium/native+hubble", "nftables", cilium, `"enable-hubble":"true"`, "", "", false, nil},
		{"cilium/native+host-firewall", "iptables", cilium, `"enable-host-firewall":"true"`, "", "", true, nil},
		{"cilium/native+legacy-routing", "none", cilium, `"enable-host-legacy-routing":"true"`, "", "", true, nil},
		{"cilium/native+pod-lb", "none", cilium, `"bpf-lb-sock-hostns-only":"true"`, "", "", true, nil},
		{"cilium/native+dsr", "none", cilium, `"bpf-lb-mode":"dsr"`, "", "", true, nil},
		{"cilium/native+bigtcp", "none", cilium, `"enable-ipv4-big-tcp":"true"`, "", "", true, nil},
		{"cilium/native+netkit", "none", cilium, `"datapath-mode":"netkit"`, "", "", false, vm.ForTestsOnBackports},
		{"cilium/native+wireguard", "iptables", cilium, `"enable-wireguard":"true"`, "", "wireguard", false, vm.ForTests},
		{"cilium/native+ipsec", "none", cilium, `"enable-ipsec":"true"`, "", "esp", false, vm.ForTests},
	}
}

// TestAgentsInCluster: with each CNI that has an agent of its own two nodes come up, pods
// reach each other in a node, between nodes and by a service, what the CNI leaves in
// the API shows which it is, and nothing is left of it on the machine.
func TestAgentsInCluster(t *testing.T) {
	for _, test := range agentTests() {
		t.Run(strings.ReplaceAll(test.cni, "/", "-"), func(t *testing.T) {
			if test.long {
				labtest.Long(t)
			}
			needCluster(t)
			needCNI(t, test.cni)
			if labtest.InVM() {
				loadModules(t)
			}
			dir := filepath.Join(t.TempDir(), "state")
			leavesNothing(t, dir, func() []string {
				r := exec.NewRunner()
				defer r.Close()
				o, s := options(r, dir), spec()
				s.CNI, s.KubeProxy = test.cni, test.proxy
				info, err := Up(t.Context(), o, s)
				if err != nil {
					t.Fatal(err)
				}
				// It is gone by then, unless a check has ended the test.
				defer func() { _, _ = lab.Down(t.Context(), o.Lab, info.ID) }()
				for _, timing := range info.Kubernetes.Timings {
					t.Logf("%-24s %6.3f s, at %6.3f s", timing.Part, timing.Seconds, timing.EndedAt)
				}
				api := connect(t, info)
				checkText(t, api, "/api/v1/namespaces/"+test.configMap, test.says)
				checkText(t, api, "/api/v1/nodes/node1", test.node)
				checkPaths(t, api)
				checkWire(t, api, info, test.wire)
				checkUsers(t, filepath.Join(dir, info.ID))
				if _, err := lab.Down(t.Context(), o.Lab, info.ID); err != nil {
					t.Error(err)
				}
				return []string{info.ID}
			})
		})
	}
}

// loadModules loads the kernel's modules with settings of their own that programs of a cluster
// ask for. Where they are loaded in the meantime, the machine has settings that it had not.
func loadModules(t *testing.T) {
	t.Helper()
	r := exec.NewRunner()
	defer r.Close()
	if _, err := r.Run(t.Context(), exec.Cmd{Argv: []string{"modprobe", "-a", "ip_vs"}}); err != nil {
		t.Fatal(err)
	}
}

// checkWire looks at the wire between the nodes while a pod asks one of the other node.
func checkWire(t *testing.T, api *kubeclient.Client, info lab.Info, want string) {
	t.Helper()
	w := onwire.NewWatch(t, netns.Named("cnb-"+info.ID+"-1-fabric"))
	ctx, cancel := context.WithTimeout(t.Context(), patient(time.Minute))
	defer cancel()
	far := net.JoinHostPort(waitPod(ctx, t, api, "/api/v1/namespaces/default/pods/far").String(), fmt.Sprint(namePort))
	if got := ask(ctx, api, far); got != "far" {
		t.Errorf("the pod far says %q", got)
	}
	plain, tunnelled := 0, 0
	for _, f := range w.Seen() {
		switch {
		case f.Tunnel != "":
			if want == "" || !strings.HasPrefix(f.Tunnel, want) {
				t.Errorf("a packet on the wire is in the tunnel %q, want %q", f.Tunnel, want)
			}
			tunnelled++
		case network.Pods().Contains(f.Source) || network.Pods().Contains(f.Destination):
			plain++
		}
	}
	// A connection, its answer and its end are at least six packets.
	if inTunnel := want != ""; inTunnel && (plain > 0 || tunnelled < 6) || !inTunnel && plain < 6 {
		t.Errorf("%d packets of pods are plain on the wire and %d in a tunnel, want the tunnel %q", plain, tunnelled, want)
	}
}

// TestAgentsInVM does the same in Debian's stock kernel, or that of its backports, for the
// CNIs that need what the kernel of CI lacks.
func TestAgentsInVM(t *testing.T) {
	for _, test := range agentTests() {
		if test.kernel == nil {
			continue
		}
		name := strings.ReplaceAll(test.cni, "/", "-")
		t.Run(name, func(t *testing.T) {
			labtest.Long(t)
			needCluster(t)
			m := test.kernel(t)
			m.MemoryMiB = 8192 // all that a Kubernetes writes is in memory too
			// A kubelet gives up a pod whose agent compiles for more than four minutes: by this
			// clock, which counts instructions, it takes less.
			m.CPUs, m.CountInstructions = 1, true
			vm.TestsIn(t, m, "^TestAgentsInCluster$/^"+regexp.QuoteMeta(name)+"$")
		})
	}
}

// patient is a bound of time, with what emulation takes.
func patient(bound time.Duration) time.Duration {
	if labtest.InVM() {
		return 6 * bound
	}
	return bound
}

// needCNI skips a test where something for a CNI is missing.
func needCNI(t *testing.T, name string) {
	t.Helper()
	n, err := FindCNI(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range n.Needs {
		labtest.Feature(t, f.Name, f.Probe())
	}
	c := &Cluster{options: options(nil, "")}
	for _, p := range n.Programs {
		if _, err := c.find(p); err == nil {
			continue
		}
		if cureOf(p) != built {
			labtest.Tool(t, p, p)
		}
		labtest.Built(t, filepath.Join(BinDirs("")[0], p))
	}
}

func checkText(t *testing.T, api *kubeclient.Client, path, want string) {
	t.Helper()
	var got json.RawMessage
	if err := api.Get(t.Context(), path, &got); err != nil || !strings.Contains(string(got), want) {
		t.Errorf("%s (%v) has no %s:\n%s", path, err, want, got)
	}
}

// checkUsers finds nobody on the nodes with the right to do everything, but the API server
// towards kubelets.
func checkUsers(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "pki", "client-*.crt"))
	if err != nil || len(files) < 5 { // admin, controllers, scheduler, a kubelet, an agent
		t.Fatalf("certificates of clients: %v (%v)", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(data)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if admin := filepath.Base(file) == "client-admin.crt"; admin != slices.Contains(cert.Subject.Organization, adminGroup) {
			t.Errorf("%s is of %v", cert.Subject.CommonName, cert.Subject.Organization)
		}
	}
}

// checkPaths runs two pods on node1 and one on node2, and asks each for its name
// from the first, then a service of the other two until both have answered.
func checkPaths(t *testing.T, api *kubeclient.Client) {
	t.Helper()
	// Cilium's agents compile before a first pod runs, which takes as long as the
	// machine is busy.
	ctx, cancel := context.WithTimeout(t.Context(), patient(3*time.Minute))
	defer cancel()
	const inDefault = "/api/v1/namespaces/default/"
	begin := time.Now()
	for name, node := range map[string]string{"client": "node1", "near": "node1", "far": "node2"} {
		labels := object{}
		if name != "client" {
			labels["serves"] = "names"
		}
		err := api.Create(ctx, inDefault+"pods", object{
			"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "labels": labels},
			"spec": object{
				"nodeName": node, "dnsPolicy": "Default", "containers": []object{{
					"name": "agent", "image": image.Name("test", false), "imagePullPolicy": "Never", "args": []string{"serve", "name", name},
				}},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := api.Create(ctx, inDefault+"services", object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "names"},
		"spec": object{"selector": object{"serves": "names"}, "clusterIP": "10.96.0.77", "ports": []object{{"port": 80, "targetPort": namePort}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{}
	for _, name := range []string{"client", "near", "far"} {
		addresses[name] = net.JoinHostPort(waitPod(ctx, t, api, inDefault+"pods/"+name).String(), fmt.Sprint(namePort))
	}
	t.Logf("pods run after %.3f s", time.Since(begin).Seconds())
	for _, name := range []string{"near", "far"} {
		until(ctx, t, addresses[name], func() (string, bool) { got := ask(ctx, api, addresses[name]); return got, got == name })
	}
	var heard []string
	until(ctx, t, "the service", func() (string, bool) {
		got := ask(ctx, api, "10.96.0.77:80")
		heard = append(heard, got)
		return got, slices.Contains(heard, "near") && slices.Contains(heard, "far")
	})
}

// until repeats what may take a moment: nodes hear of pods and services by events.
func until(ctx context.Context, t *testing.T, what string, try func() (string, bool)) {
	t.Helper()
	last := ""
	for ctx.Err() == nil {
		got, done := try()
		if done {
			return
		}
		last = got
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s, asked from the pod client: %s", what, last)
}

// ask gives the name that an address serves, or why it does not, as the pod client
// sees it.
func ask(ctx context.Context, client *kubeclient.Client, address string) string {
	ctx, cancel := context.WithTimeout(ctx, patient(10*time.Second))
	defer cancel()
	p := client.Exec(ctx, kubeclient.Target{Namespace: "default", Pod: "client", Container: "agent"}, []string{"/cnibench", "ask", "name", address})
	_ = p.Stdin.Close() // it reads nothing
	out, err := io.ReadAll(p.Stdout)
	if waitErr := p.Wait(); err != nil || waitErr != nil {
		return fmt.Sprintf("%v %v %s", err, waitErr, p.Stderr())
	}
	return string(out)
}
