package lab

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/tunnel"
	"github.com/cnibench/cnibench/internal/workload"
)

// TestMain lets the test binary be what the lab starts: a CNI plugin, an
// agent, and, for the tests that kill it, the owner of a lab.
func TestMain(m *testing.M) {
	if handled, exit := catalog.RunAsPlugin(os.Args[0], os.Environ()); handled {
		os.Exit(exit)
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "agent":
			os.Exit(agent.Serve(context.Background(), os.Stdin, os.Stdout))
		case "tunnel":
			if err := tunnel.ServeArg(context.Background(), os.Args[2], os.Stdin); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "asker":
			os.Exit(asker(os.Args[2], os.Args[3], os.Args[4]))
		case "owner":
			os.Exit(owner(os.Args[2], os.Args[3:]))
		}
	}
	// Tests that mark themselves as parallel wait for the kernel much of their time.
	if !labtest.InVM() {
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.NumCPU())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// owner builds a lab with agents in it, of networks or of many where none is named, and
// waits to be killed.
func owner(dir string, networks []string) int {
	r := exec.NewRunner()
	defer r.Close()
	l := New(options(r, dir))
	fmt.Println("building")
	all := cells("bridge", "flannel/vxlan", "calico/direct-policy", "macvlan", "host", "docker/overlay",
		"spiderpool/macvlan-routed", "hpc/singularity", "flannel/udp", "cilium/vxlan", "calico/direct+sockmap",
		"antrea/geneve", "weave/sleeve")
	all = append(all, encryptedCell{method: result.EncryptionWireGuardGo, network: "flannel/vxlan"}.cell())
	for _, proxy := range []string{"iptables", "nftables", "ebpf", "xdp"} {
		all = append(all, serviceCells("bridge", proxy, 10)...)
	}
	all = append(all, ingressCells("bridge")...)
	if len(networks) > 0 {
		all = nil
	}
	for _, name := range networks {
		n, err := catalog.Find(name)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		all = append(all, supported(n)...)
	}
	if _, err := l.Build(context.Background(), all); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("built", l.ID())
	for _, c := range all {
		if _, err := l.Ends(context.Background(), c); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println("agents run")
	time.Sleep(time.Minute)
	return 0
}

func options(r *exec.Runner, dir string) Options {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return Options{Runner: r, Agent: []string{self, "agent"}, CNIPath: cni.SearchPath(""), Verb: "test", Dir: dir, SetsAlgorithm: workload.SetsCongestionControl}
}

// newRunner makes a runner that the test's end closes.
func newRunner(t testing.TB) *exec.Runner {
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	return r
}

// cells are pod-to-pod cells of networks (host-to-host for host), both
// placements, on an unshaped link.
func cells(networks ...string) []result.Cell {
	var all []result.Cell
	for _, n := range networks {
		for _, placement := range []string{result.InterHost, result.IntraHost} {
			c := result.Cell{
				Network: n, Path: result.PathPodToPod, Placement: placement, Link: "unshaped", Profile: DefaultProfile,
				MTU: 1500, Workload: "tcp_rr",
			}
			if n == result.HostNetwork {
				c = c.Baseline()
			}
			all = append(all, c)
		}
	}
	return all
}
