package labkubernetes

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/network"
)

const (
	apiPort  = 6443
	etcdPort = 2379
	// heartbeatGrace is how long a node may be silent and still count as ready: a
	// frozen cluster is, and it must be itself again when it goes on.
	heartbeatGrace = "1h"
)

// startControlPlane starts etcd and the API server at once, and when that
// answers makes what it must know: the nodes, the proxy's settings, the CNI's
// objects. Then the controllers and the scheduler follow.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	if err := c.startAPI(ctx); err != nil {
		return err
	}
	if err := c.timed("API server", func() error {
		return c.wait(ctx, "the API server", func() error { return c.API.Get(ctx, "/readyz", nil) })
	}); err != nil {
		return err
	}
	if err := c.makeNodes(ctx); err != nil {
		return err
	}
	if err := c.startControllers(); err != nil {
		return err
	}
	if err := c.proxyObjects(ctx); err != nil {
		return err
	}
	if c.cni.Objects == nil {
		return nil
	}
	return c.cni.Objects(ctx, c)
}

// startAPI starts etcd, the API server and its relay on this machine's loopback (Relay).
func (c *Cluster) startAPI(ctx context.Context) error {
	etcd := fmt.Sprintf("http://127.0.0.1:%d", etcdPort)
	// Its data is in the node's memory, and it is alone: it need not wait long, in
	// milliseconds, for others that would lead.
	if err := c.Start(c.control, "etcd", c.Program("etcd"), "--data-dir=/run/etcd", "--name=lab",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
		"--initial-cluster=lab=http://127.0.0.1:2380", "--logger=zap", "--log-level=warn",
		"--heartbeat-interval=10", "--election-timeout=100"); err != nil {
		return err
	}
	kubelet, err := c.pki.issue("apiserver-to-kubelets", pkix.Name{CommonName: "kube-apiserver", Organization: []string{adminGroup}}, nil, nil)
	if err != nil {
		return err
	}
	own := c.pki
	argv := []string{
		c.Program("kube-apiserver"), "--etcd-servers=" + etcd,
		fmt.Sprintf("--secure-port=%d", apiPort), "--advertise-address=" + c.lab.Control.Address.Addr().String(),
		"--tls-cert-file=" + own.file("apiserver.crt"), "--tls-private-key-file=" + own.file("apiserver.key"),
		"--client-ca-file=" + own.file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + own.file("service-accounts.pub"), "--service-account-signing-key-file=" + own.file("service-accounts.key"),
		"--service-cluster-ip-range=" + c.serviceCIDRs(), "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true", "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-certificate-authority=" + own.file("ca.crt"),
		"--kubelet-client-certificate=" + kubelet.certFile, "--kubelet-client-key=" + kubelet.keyFile,
	}
	if err := c.Start(c.control, "kube-apiserver", argv...); err != nil {
		return err
	}
	return c.openRelay()
}

// openRelay lets this machine's loopback lead to the API server, and writes the
// kubeconfig.
func (c *Cluster) openRelay() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("a port on this machine's loopback: %w", err)
	}
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer file.Close()
	// The program is in the control plane's namespace, the socket that it takes
	// connections from stays in this machine's.
	if _, err := c.launch(c.control, "relay", exec.Cmd{
		Argv: []string{c.options.Self, "lab", "relay", fmt.Sprintf("127.0.0.1:%d", apiPort)}, Files: []*os.File{file},
	}); err != nil {
		return err
	}
	admin, err := c.pki.issue("client-admin", pkix.Name{CommonName: "kubernetes-admin", Organization: []string{adminGroup}}, nil, nil)
	if err != nil {
		return err
	}
	if err := c.adminKubeconfig("https://"+listener.Addr().String(), admin); err != nil {
		return err
	}
	c.API, err = kubeclient.Connect(c.lab.Recorded().Kubeconfig, c.Spec.Name)
	return err
}

// startControllers starts what acts on the API's objects.
func (c *Cluster) startControllers() error {
	controllers, err := c.Kubeconfig("system:kube-controller-manager")
	if err != nil {
		return err
	}
	scheduler, err := c.Kubeconfig("system:kube-scheduler")
	if err != nil {
		return err
	}
	// With the usual 20 calls a second its start alone takes six.
	if err := c.Start(c.control, "kube-controller-manager", c.Program("kube-controller-manager"), "--kube-api-qps=500", "--kube-api-burst=1000",
		"--kubeconfig="+controllers, "--authentication-kubeconfig="+controllers, "--authorization-kubeconfig="+controllers,
		"--leader-elect=false", "--use-service-account-credentials=true", "--allocate-node-cidrs=false",
		"--cluster-cidr="+c.podCIDRs(), "--service-cluster-ip-range="+c.serviceCIDRs(),
		"--root-ca-file="+c.pki.file("ca.crt"), "--service-account-private-key-file="+c.pki.file("service-accounts.key"),
		"--cluster-signing-cert-file="+c.pki.file("ca.crt"), "--cluster-signing-key-file="+c.pki.file("ca.key"),
		"--node-monitor-grace-period="+heartbeatGrace); err != nil {
		return err
	}
	return c.Start(c.control, "kube-scheduler", c.Program("kube-scheduler"), "--kubeconfig="+scheduler,
		"--authentication-kubeconfig="+scheduler, "--authorization-kubeconfig="+scheduler, "--leader-elect=false")
}

// makeNodes makes the nodes' objects before their kubelets find them, so that
// each has the pods' range that its CNI configuration has.
func (c *Cluster) makeNodes(ctx context.Context) error {
	for _, n := range c.nodes {
		ranges := podRanges(n.Node)
		node := object{
			"apiVersion": "v1", "kind": "Node", "metadata": object{"name": n.Name},
			"spec": object{"podCIDR": ranges[0], "podCIDRs": ranges},
		}
		if err := c.API.Create(ctx, "/api/v1/nodes", node); err != nil {
			return err
		}
	}
	return nil
}

func podRanges(n network.Node) []string {
	ranges := []string{n.PodCIDR.String()}
	if n.PodCIDR6.IsValid() {
		ranges = append(ranges, n.PodCIDR6.String())
	}
	return ranges
}

// nodeIPs is a node's addresses as kubelets take them.
func nodeIPs(n network.Node) string {
	all := []string{n.Address.Addr().String()}
	if n.Address6.IsValid() {
		all = append(all, n.Address6.Addr().String())
	}
	return strings.Join(all, ",")
}
