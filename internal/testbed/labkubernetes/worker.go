package labkubernetes

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/goccy/go-yaml"

	"github.com/cnibench/cnibench/internal/cni"
)

// containerdSocket is its usual place, in the node's own /run.
const containerdSocket = "/run/containerd/containerd.sock"

//go:embed containerd.toml
var containerdConfig string

// startWorker brings one node up: its network, containerd and the image before
// the API is needed; then the kubelet, the proxy and the CNI's agent.
func (c *Cluster) startWorker(ctx context.Context, n *Node, image string, written, ready <-chan struct{}) error {
	if err := c.writeConflist(ctx, n); err != nil {
		return err
	}
	if err := c.startContainerd(ctx, n); err != nil {
		return err
	}
	for _, wanted := range []<-chan struct{}{written, ready} {
		select {
		case <-wanted:
		case <-ctx.Done():
			return ctx.Err()
		}
		if wanted == written {
			if err := c.run(ctx, n, c.Program("ctr"), "--address", containerdSocket, "--namespace", "k8s.io", "images", "import", image); err != nil {
				return fmt.Errorf("image: %w", err)
			}
		}
	}
	if err := c.startKubelet(n); err != nil {
		return err
	}
	if err := c.startProxy(n); err != nil {
		return err
	}
	if c.cni.StartNode == nil {
		return nil
	}
	return c.cni.StartNode(ctx, c, n)
}

// writeConflist writes the node's CNI configuration list, where the CNI's agent
// does not.
func (c *Cluster) writeConflist(ctx context.Context, n *Node) error {
	if c.cni.Conflist == nil {
		return nil
	}
	data, err := c.cni.Conflist(ctx, c, n)
	if err != nil {
		return err
	}
	list, err := cni.ParseConflist(c.cni.Name, data)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(n.Conf, "10-"+fileName(c.cni.Name)+".conflist"), list.JSON(), 0o644)
}

func (c *Cluster) startContainerd(ctx context.Context, n *Node) error {
	t, err := template.New("containerd.toml").Option("missingkey=error").Parse(containerdConfig)
	if err != nil {
		return err
	}
	var text strings.Builder
	err = t.Execute(&text, map[string]string{
		"Socket": containerdSocket, "Image": c.imageName(), "Runc": c.Program("runc"), "Plugins": c.Plugins(), "Conf": n.Conf,
	})
	if err != nil {
		return err
	}
	config := filepath.Join(n.Dir, "containerd.toml")
	if err := os.WriteFile(config, []byte(text.String()), 0o644); err != nil {
		return err
	}
	if err := c.Start(n, "containerd", c.Program("containerd"), "--config", config, "--log-level", "warn"); err != nil {
		return err
	}
	// The node's /run is seen through a process in it.
	socket := fmt.Sprintf("/proc/%d/root%s", n.holder, containerdSocket)
	return c.wait(ctx, "containerd", func() error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// startKubelet starts the node's kubelet. Its settings are those with which it
// needs neither systemd nor cgroups of a quality of service, and never clears
// images away.
func (c *Cluster) startKubelet(n *Node) error {
	kubeconfig, err := c.Kubeconfig("system:node:"+n.Name, "system:nodes")
	if err != nil {
		return err
	}
	settings := object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": object{
			"anonymous": object{"enabled": false}, "webhook": object{"enabled": true},
			"x509": object{"clientCAFile": c.pki.file("ca.crt")},
		},
		"authorization": object{"mode": "Webhook"},
		"tlsCertFile":   c.pki.file("kubelet-" + n.Name + ".crt"), "tlsPrivateKeyFile": c.pki.file("kubelet-" + n.Name + ".key"),
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"cgroupDriver":             "cgroupfs", "cgroupsPerQOS": true, "enforceNodeAllocatable": []string{},
		"cgroupRoot":                    c.podsCgroup(n.Name),
		"localStorageCapacityIsolation": false, "failSwapOn": false, "resolvConf": "",
		"imageGCHighThresholdPercent": 100, "evictionHard": object{"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
		"registerNode": true, "syncFrequency": "10s", "maxPods": 250,
		"shutdownGracePeriod": "0s", "healthzPort": 10248,
	}
	data, err := yaml.Marshal(settings)
	if err != nil {
		return err
	}
	config := filepath.Join(n.Dir, "kubelet.yaml")
	if err := os.WriteFile(config, data, 0o644); err != nil {
		return err
	}
	return c.Start(n, "kubelet", c.Program("kubelet"), "--config="+config, "--kubeconfig="+kubeconfig,
		"--hostname-override="+n.Name, "--node-ip="+nodeIPs(n.Node), "--root-dir=/var/lib/kubelet")
}
