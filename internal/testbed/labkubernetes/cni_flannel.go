package labkubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// flannels are flannel with each backend that its agent here has. The agent is of
// flannel's own packages (tools/flannel); the plugin "flannel" is cnibench-flannel.
func flannels() []CNI {
	one := func(backend, summary string, ipv6 bool, needs ...netns.Feature) CNI {
		return CNI{
			Name: "flannel/" + backend, Summary: summary, IPv6: ipv6,
			Programs: []string{"cnibench-flanneld", "iptables"},
			Plugins:  []string{"bridge", "host-local", "portmap"},
			Needs:    append(needs, iptablesKernel()),
			Objects:  func(ctx context.Context, c *Cluster) error { return c.flannelObjects(ctx, backend) },
			StartNode: func(_ context.Context, c *Cluster, n *Node) error {
				return c.startFlannel(n)
			},
		}
	}
	return []CNI{
		one("vxlan", "flannel v0.28: cni0 bridge, VXLAN between nodes", true, netns.VXLAN()),
		one("host-gw", "flannel v0.28: cni0 bridge, routes through the nodes", true),
		one("ipip", "flannel v0.28: cni0 bridge, IP in IP between nodes", false, netns.IPIP()),
		// It was not seen with IPv6.
		one("wireguard", "flannel v0.28: cni0 bridge, the kernel's WireGuard between nodes", false, netns.WireGuard()),
	}
}

// flannelRights are those of the ClusterRole in kube-flannel.yml (v0.28.0).
func flannelRights() []rule {
	return []rule{
		{resources: []string{"pods"}, verbs: []string{"get"}},
		{resources: []string{"nodes"}, verbs: []string{"get", "list", "watch"}},
		{resources: []string{"nodes/status"}, verbs: []string{"patch"}},
	}
}

// flannelObjects makes what kube-flannel.yml has in addition to the DaemonSet.
func (c *Cluster) flannelObjects(ctx context.Context, backend string) error {
	const namespace = "kube-flannel"
	labels := object{"k8s-app": "flannel"}
	err := c.API.Create(ctx, "/api/v1/namespaces", object{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": object{"name": namespace, "labels": object{"k8s-app": "flannel", "pod-security.kubernetes.io/enforce": "privileged"}},
	})
	if err != nil {
		return err
	}
	// The agent reads the ConfigMap itself, which the DaemonSet has as a volume.
	volume := []rule{{resources: []string{"configmaps"}, verbs: []string{"get"}, names: []string{"kube-flannel-cfg"}}}
	if c.kubeconfigs["flanneld"], err = c.account(ctx, namespace, "flannel", flannelRights(), volume); err != nil {
		return err
	}
	settings := object{
		"Network": network.Pods(), "Backend": object{"Type": backend},
		// As kube-proxy, so that one packet filter has all rules.
		"EnableNFTables": c.Spec.KubeProxy == "nftables",
	}
	if c.Spec.IPv6 {
		settings["EnableIPv6"], settings["IPv6Network"] = true, network.Pods6()
	}
	conflist := object{
		"name": "cbr0", "cniVersion": "1.0.0", "plugins": []object{
			{"type": "cnibench-flannel", "delegate": object{"hairpinMode": true, "isDefaultGateway": true}},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}
	data := object{}
	for key, value := range map[string]object{"net-conf.json": settings, "cni-conf.json": conflist} {
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		data[key] = string(text)
	}
	return c.API.Create(ctx, "/api/v1/namespaces/"+namespace+"/configmaps", object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"name": "kube-flannel-cfg", "namespace": namespace, "labels": labels}, "data": data,
	})
}

// startFlannel starts a node's agent, which reads the ConfigMap and writes the CNI
// configuration list when its backend is ready.
func (c *Cluster) startFlannel(n *Node) error {
	if err := network.KubernetesNode(n.Node); err != nil {
		return err
	}
	return c.Start(n, "flanneld", c.Program("cnibench-flanneld"), "--kubeconfig="+c.kubeconfigs["flanneld"], "--node="+n.Name,
		"--iface="+n.Device, "--cni-conf="+filepath.Join(n.Conf, "10-flannel.conflist"))
}
