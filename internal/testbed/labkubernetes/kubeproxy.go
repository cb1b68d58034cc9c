package labkubernetes

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"

	"github.com/cnibench/cnibench/internal/netns"
)

// proxySettings is kube-proxy's configuration, as kubeadm has it in a ConfigMap.
// The limits of conntrack are the whole machine's: they stay as they are.
func (c *Cluster) proxySettings(kubeconfig string) ([]byte, error) {
	return yaml.Marshal(object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode": c.Spec.KubeProxy, "clusterCIDR": c.podCIDRs(), "bindAddress": "0.0.0.0",
		"clientConnection": object{"kubeconfig": kubeconfig},
		"conntrack":        object{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	})
}

// proxyObjects makes the ConfigMap by which people and cnibench see how services
// are carried out.
func (c *Cluster) proxyObjects(ctx context.Context) error {
	if c.Spec.KubeProxy == "none" {
		return nil
	}
	kubeconfig, err := c.Kubeconfig("system:kube-proxy")
	if err != nil {
		return err
	}
	data, err := c.proxySettings(kubeconfig)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.proxyConfig(), data, 0o644); err != nil {
		return err
	}
	return c.API.Create(ctx, "/api/v1/namespaces/kube-system/configmaps", object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "kube-proxy", "namespace": "kube-system", "labels": object{"app": "kube-proxy"}},
		"data": object{"config.conf": string(data)},
	})
}

func (c *Cluster) proxyConfig() string { return filepath.Join(c.Dir(), "kube-proxy.yaml") }

// startProxy starts the node's kube-proxy, with the settings of the ConfigMap.
func (c *Cluster) startProxy(n *Node) error {
	if c.Spec.KubeProxy == "none" {
		return nil
	}
	return c.Start(n, "kube-proxy", c.Program("kube-proxy"), "--config="+c.proxyConfig(), "--hostname-override="+n.Name)
}

// proxyHealth is where kube-proxy reports on its node that it has carried out what
// the API has.
const proxyHealth = "http://127.0.0.1:10256/healthz"

// proxyReady reports whether a node's kube-proxy has done its first round.
func proxyReady(n *Node) error {
	req, err := http.NewRequest(http.MethodGet, proxyHealth, http.NoBody)
	if err != nil {
		return err
	}
	conn, err := netns.Dial(n.NS, req.URL.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := req.Write(conn); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("kube-proxy on %s: %s", n.Name, res.Status)
	}
	return nil
}
