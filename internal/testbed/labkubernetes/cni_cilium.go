package labkubernetes

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/netns"
)

// ciliumNamespace is where Cilium's chart installs it.
const ciliumNamespace = "kube-system"

// ciliumCgroup is Cilium's own default of where the cgroup is that its programs at
// sockets are attached to; a node's pods are below it.
const ciliumCgroup = "/run/cilium/cgroupv2"

// ciliums are Cilium in each of its modes. Its agent, operator and plugin are its own
// (tools/cilium); the agent compiles its eBPF programs on each node.
func ciliums() []CNI {
	var all []CNI
	for _, m := range ciliumModes() {
		all = append(all, CNI{
			Name: "cilium/" + m.name, Summary: "Cilium v1.18: " + m.summary, IPv6: m.ipv6, KubeProxy: m.kubeProxy,
			Programs: []string{"cilium-agent", "cilium-operator", "cilium-cni", "cilium-bpf", "cilium-crds", "clang-19", "iptables", "ipset"},
			Plugins:  []string{"cilium-cni"},
			Needs:    append(m.needs, netns.BPFAtDevice(), iptablesKernel(), netns.IPSet(), netns.Conntrack()),
			Objects:  func(ctx context.Context, c *Cluster) error { return c.ciliumObjects(ctx, m.settings) },
			StartOnce: func(_ context.Context, c *Cluster) error {
				return c.startCilium(c.Control(), "cilium-operator")
			},
			StartNode: func(ctx context.Context, c *Cluster, n *Node) error {
				if err := c.ciliumCgroups(ctx, n); err != nil {
					return err
				}
				return c.startCilium(n, "cilium-agent")
			},
			Verify: func(ctx context.Context, c *Cluster, n *Node) error {
				return c.verifyCilium(ctx, n, m.reported(c.Spec.KubeProxy))
			},
		})
	}
	return all
}

// ciliumSettings is the ConfigMap cilium-config: what Cilium's chart makes of its
// defaults, as far as agent and operator have no such defaults themselves, without
// Hubble, Envoy and the health checks between nodes. kube-proxy is replaced where
// the cluster has none. Those of the mode come last.
func (c *Cluster) ciliumSettings(mode map[string]string) map[string]string {
	replaces := c.Spec.KubeProxy == "none"
	settings := map[string]string{
		"cluster-name": "default", "cluster-id": "0", "debug": "false",
		"enable-ipv4": "true", "enable-ipv6": strconv.FormatBool(c.Spec.IPv6),
		"ipam": "kubernetes", "k8s-require-ipv4-pod-cidr": "true", "k8s-require-ipv6-pod-cidr": strconv.FormatBool(c.Spec.IPv6),
		"identity-allocation-mode": "crd", "enable-policy": "default",
		"datapath-mode": "veth", "devices": c.Nodes()[0].Device,
		"kube-proxy-replacement": strconv.FormatBool(replaces),
		"enable-ipv4-masquerade": "true", "enable-ipv6-masquerade": strconv.FormatBool(c.Spec.IPv6),
		// With it and without kube-proxy packets pass the node by eBPF alone.
		"enable-bpf-masquerade": strconv.FormatBool(replaces),
		"enable-l7-proxy":       "false", "enable-envoy-config": "false", "external-envoy-proxy": "false", "enable-hubble": "false",
		"enable-health-checking": "false", "enable-endpoint-health-checking": "false",
		// Without it the programs write an event for each packet.
		"monitor-aggregation": "medium", "monitor-aggregation-interval": "5s", "monitor-aggregation-flags": "all",
		"cgroup-root": ciliumCgroup, "bpf-root": "/sys/fs/bpf", "lib-dir": c.ciliumTools(),
		"skip-crd-creation": "true", "cni-exclusive": "true",
		"operator-api-serve-addr": "127.0.0.1:9234", "agent-not-ready-taint-key": "node.cilium.io/agent-not-ready",
		"remove-cilium-node-taints": "true", "set-cilium-node-taints": "true", "set-cilium-is-up-condition": "true",
	}
	maps.Copy(settings, mode)
	return settings
}

// ciliumObjects makes the ConfigMap and, of it, the folder that agents and operator
// read: what they would have as a volume.
func (c *Cluster) ciliumObjects(ctx context.Context, mode map[string]string) error {
	settings := c.ciliumSettings(mode)
	if settings[ipsec] == "true" {
		settings["ipsec-key-file"] = filepath.Join(c.Dir(), "cilium-ipsec-keys")
		if err := writeIPsecKey(settings["ipsec-key-file"]); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.ciliumConfig(), 0o755); err != nil {
		return err
	}
	for key, value := range settings {
		if err := os.WriteFile(filepath.Join(c.ciliumConfig(), key), []byte(value), 0o644); err != nil {
			return err
		}
	}
	if err := os.Mkdir(c.ciliumTools(), 0o755); err != nil {
		return err
	}
	for link, name := range map[string]string{"clang": "clang-19", "bpf": "cilium-bpf"} {
		if err := os.Symlink(c.Program(name), filepath.Join(c.ciliumTools(), link)); err != nil {
			return err
		}
	}
	if err := c.ciliumDefinitions(ctx); err != nil {
		return err
	}
	if err := c.ciliumAccounts(ctx); err != nil {
		return err
	}
	return c.API.Create(ctx, "/api/v1/namespaces/"+ciliumNamespace+"/configmaps", object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"name": "cilium-config", "namespace": ciliumNamespace}, "data": settings,
	})
}

// writeIPsecKey makes the key of which agents derive those of each pair of nodes: what the
// secret cilium-ipsec-keys has that Cilium's documentation makes (`cilium encrypt create-key`).
// 20 bytes are the key of AES-128-GCM and its salt (RFC 4106), 128 the bits of its tags.
func writeIPsecKey(path string) error {
	key := make([]byte, 20)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	return os.WriteFile(path, fmt.Appendf(nil, "3+ rfc4106(gcm(aes)) %x 128\n", key), 0o600)
}

// ciliumDefinitions makes the definitions of Cilium's objects, as many at the same time as
// there are CPUs: the API server computes for each, and on a slow machine all at once would
// be too late. Cilium's operator makes one after the other and waits half a second for each.
func (c *Cluster) ciliumDefinitions(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(c.Program("cilium-crds"), "*", "*.yaml"))
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, file := range files {
		g.Go(func() error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			return c.API.CreateYAML(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", text)
		})
	}
	return g.Wait()
}

func (c *Cluster) ciliumConfig() string { return filepath.Join(c.Dir(), "cilium-config") }

// ciliumTools is the folder with the agent's compiler and the sources for it, by the
// names that it calls them.
func (c *Cluster) ciliumTools() string { return filepath.Join(c.Dir(), "cilium-tools") }

// ciliumCgroups makes ciliumCgroup in the node's mounts.
func (c *Cluster) ciliumCgroups(ctx context.Context, n *Node) error {
	root, err := netns.CgroupRoot()
	if err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"mkdir", "-p", ciliumCgroup},
		{"mount", "--bind", filepath.Join(root, c.podsCgroup(n.Name)), ciliumCgroup},
	} {
		if err := c.run(ctx, n, argv...); err != nil {
			return err
		}
	}
	return nil
}

// ciliumAccounts makes the accounts of agents and operator, with a kubeconfig each.
func (c *Cluster) ciliumAccounts(ctx context.Context) (err error) {
	settings := []rule{{resources: []string{"configmaps"}, verbs: []string{"get", "list", "watch"}}}
	c.kubeconfigs["cilium-agent"], err = c.account(ctx, ciliumNamespace, "cilium", ciliumAgentRights(), settings)
	if err != nil {
		return err
	}
	c.kubeconfigs["cilium-operator"], err = c.account(ctx, ciliumNamespace, "cilium-operator", ciliumOperatorRights(), nil)
	return err
}

// startCilium starts an agent or the operator.
func (c *Cluster) startCilium(n *Node, name string) error {
	argv := []string{
		"env", "K8S_NODE_NAME=" + n.Name, "CILIUM_K8S_NAMESPACE=" + ciliumNamespace,
		"PATH=" + c.ciliumTools() + ":" + usualPath,
		c.Program(name), "--config-dir=" + c.ciliumConfig(), "--k8s-kubeconfig-path=" + c.kubeconfigs[name],
	}
	if name == "cilium-agent" {
		argv = append(argv, "--write-cni-conf-when-ready="+filepath.Join(n.Conf, "05-cilium.conflist"))
	}
	return c.Start(n, name, argv...)
}
