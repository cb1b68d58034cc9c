package baremetal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// pods is the testbed of the Kubernetes that has both hosts as nodes.
type pods struct {
	testbed testbed.Testbed
	// nodes are the names of the client's and the server's node in it.
	nodes [2]string
}

// HasCluster reports whether the inventory names the control plane of a Kubernetes.
func (b *Testbed) HasCluster() bool { return b.inventory.ControlPlane != nil }

// Kubeconfig fetches the control plane's, once, and keeps what kubeclient.Reduce leaves of it in
// memory: no file with credentials survives a kill. The path leads there as long as the
// testbed is open.
func (b *Testbed) Kubeconfig(ctx context.Context) (string, error) {
	if b.kubeconfig != nil {
		return inMemory(b.kubeconfig), nil
	}
	h := *b.inventory.ControlPlane
	text, err := h.run(ctx, b.options.Runner, "cat", "--", h.Kubeconfig)
	if err != nil {
		return "", fmt.Errorf("the kubeconfig of %s (cnibench_kubeconfig names another): %w", h.Name, err)
	}
	reduced, err := kubeclient.Reduce([]byte(text))
	if err != nil {
		return "", fmt.Errorf("the kubeconfig of %s (cnibench_kubeconfig names another): %w", h.Name, err)
	}
	b.kubeconfig, err = keepInMemory(reduced)
	if err != nil {
		return "", err
	}
	return inMemory(b.kubeconfig), nil
}

// keepInMemory makes a file without a name, which ends with this process.
func keepInMemory(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("kubeconfig", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "kubeconfig")
	if _, err := f.Write(data); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func inMemory(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// Addresses are those that traffic to client and server is sent to; Bootstrap
// comes first.
func (b *Testbed) Addresses() [2]netip.Addr {
	return [2]netip.Addr{b.ends[0].address, b.ends[1].address}
}

// Join adds the Kubernetes that both hosts are nodes of, by the names of their
// nodes: of measures the cells of its network, and those inside one host. It is
// closed with this testbed.
func (b *Testbed) Join(of testbed.Testbed, nodes [2]string) { b.pods = &pods{of, nodes} }

// ofPods reports whether the Kubernetes measures a cell.
func (b *Testbed) ofPods(c result.Cell) bool {
	return b.pods != nil && (c.Network != result.HostNetwork || c.Placement != result.InterHost)
}

// inCluster is a cell as a cluster knows it: link and profile are of its nodes.
func inCluster(c result.Cell) result.Cell {
	c.Link, c.Profile = result.UnshapedLink, result.DefaultProfile
	return c
}

// supportPods says why a cell of pods cannot be measured on these nodes.
func (b *Testbed) supportPods(c result.Cell) error {
	for _, e := range b.ends {
		if e.facts.mtu > 0 && e.facts.mtu != c.MTU {
			return fmt.Errorf("the cluster gave its pods their MTU when its nodes had %d: MTU %d is measured between hosts alone", e.facts.mtu, c.MTU)
		}
	}
	return b.supportLink(c)
}

// buildPods adds what the Kubernetes cannot measure of what is not yet known to be
// unsupported.
func (b *Testbed) buildPods(ctx context.Context, cells []result.Cell, unsupported map[result.Cell]string) error {
	var inner []result.Cell
	for _, c := range cells {
		if _, known := unsupported[c]; !known && b.ofPods(c) && !slices.Contains(inner, inCluster(c)) {
			inner = append(inner, inCluster(c))
		}
	}
	if len(inner) == 0 {
		return nil
	}
	without, err := b.pods.testbed.Build(ctx, inner)
	for _, c := range cells {
		if why, is := without[inCluster(c)]; is && b.ofPods(c) && unsupported[c] == "" {
			unsupported[c] = why
		}
	}
	return err
}

// podEnds gives the ends of a cell of pods. Their nodes have its profile already;
// what of it does not reach into a pod is a doubt.
func (b *Testbed) podEnds(ctx context.Context, cell result.Cell) (testbed.Ends, error) {
	ends, err := b.pods.testbed.Ends(ctx, inCluster(cell))
	if err != nil {
		return testbed.Ends{}, err
	}
	for _, p := range []*testbed.Place{&ends.Client, &ends.Server} {
		i := slices.Index(b.pods.nodes[:], p.Node)
		if i < 0 {
			return testbed.Ends{}, fmt.Errorf("%s is on node %s, which is neither the client nor the server of the inventory", p.Name, p.Node)
		}
		f, err := p.Agent.Facts(ctx)
		if err != nil {
			return testbed.Ends{}, fmt.Errorf("%s: facts: %w", p.Name, err)
		}
		p.Settings, p.Doubts = inPod(cell.Profile, b.ends[i], f.Sysctls)
	}
	return ends, nil
}

// inPod is what of a node's settings is in force in a pod on it. A pod has its own
// values of what belongs to a network namespace, which is all of net.ipv4; the
// rest is the node's for all.
func inPod(name string, node *end, own map[string]string) (values map[string]string, doubts []string) {
	values, doubts = maps.Clone(node.values), slices.Clone(node.doubts)
	for k := range values {
		if v, tells := own[k]; tells {
			values[k] = v
		} else if strings.HasPrefix(k, "net.ipv4.") {
			delete(values, k) // the pod's own is not known
		}
	}
	var otherwise []result.Setting
	for _, s := range node.asked {
		if v, tells := own[s.Name]; tells && v != s.Value && s.Reason == "" {
			s.Value, s.Reason = v, "a pod has it for itself, and profiles are given to nodes"
			otherwise = append(otherwise, s)
		}
	}
	return values, append(doubts, profile.Doubts(name, otherwise)...)
}

// withPods adds to an environment what the Kubernetes reports about itself.
func (b *Testbed) withPods(ctx context.Context, env *result.Environment) error {
	if b.pods == nil {
		return nil
	}
	of, err := b.pods.testbed.Environment(ctx)
	maps.Copy(env.Places, of.Places)
	maps.Copy(env.Networks, of.Networks)
	env.Clusters = of.Clusters
	return err
}

// closePods takes down what the Kubernetes was given; once.
func (b *Testbed) closePods(ctx context.Context) error {
	if b.pods == nil {
		return nil
	}
	of := b.pods.testbed
	b.pods = nil
	if err := of.Close(ctx); err != nil {
		return errors.Join(err, errors.New("the next run on the cluster, or cnibench hosts reset, deletes what is left there"))
	}
	return nil
}
