package kubeclient

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// evidence is what a cluster's API says about its network.
type evidence struct {
	daemonSets []appsv1.DaemonSet
	// configMaps has the data of the existing ones of configMaps(), by name.
	configMaps map[string]map[string]string
	nodes      []corev1.Node
	pools      []ipPool
	felix      []felixConfiguration
	seen       Seen
	// unread says what could not be read, and why.
	unread []string
}

// Calico's own objects are in the one group or, from v3.32 on, in the other
// (docs.tigera.io, native v3 CRDs), which an API server of Calico's may serve beside
// the first.
const (
	calicoGroup   = "crd.projectcalico.org"
	calicoV3Group = "projectcalico.org"
)

// ipPool and felixConfiguration are the parts of Calico's objects that matter.
type ipPool struct {
	Spec struct {
		CIDR      string `json:"cidr"`
		IPIPMode  string `json:"ipipMode"`
		VXLANMode string `json:"vxlanMode"`
		Disabled  bool   `json:"disabled"`
	} `json:"spec"`
}

type felixConfiguration struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		BPFEnabled       *bool  `json:"bpfEnabled"`
		WireguardEnabled *bool  `json:"wireguardEnabled"`
		NFTablesMode     string `json:"nftablesMode"`
	} `json:"spec"`
}

// agentConfigMaps are the ConfigMaps in the namespace of their network's agent.
func (e *evidence) agentConfigMaps() [][2]string {
	var all [][2]string
	for _, ds := range e.daemonSets {
		for _, c := range ds.Spec.Template.Spec.Containers {
			name := map[string]string{"cilium-agent": "cilium-config", "antrea-agent": "antrea-config", "kube-flannel": "kube-flannel-cfg"}[c.Name]
			if id := [2]string{ds.Namespace, name}; name != "" && !slices.Contains(configMaps(), id) {
				all = append(all, id)
			}
		}
	}
	return all
}

// configMaps are where networks keep their configuration: namespace and name.
func configMaps() [][2]string {
	return [][2]string{
		{"kube-system", "antrea-config"},
		{"kube-system", "amazon-vpc-cni"},
		{"kube-system", "calico-config"},
		{"kube-system", "canal-config"},
		{"kube-system", "cilium-config"},
		{"kube-flannel", "kube-flannel-cfg"},
		{"kube-system", "kube-flannel-cfg"},
		{"kube-system", "kube-proxy"},
		{"kube-system", "kube-proxy-config"},
	}
}

func configMapNames() []string {
	var names []string
	for _, c := range configMaps() {
		names = append(names, c[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nodesAsked bounds the list of nodes: they are all alike.
const nodesAsked = 200

// gather asks for everything that identifies a network.
func (c *Client) gather(ctx context.Context) *evidence {
	e := &evidence{configMaps: map[string]map[string]string{}}
	if list, err := c.API.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{}); e.have("DaemonSets", err) {
		e.daemonSets = list.Items
	}
	if list, err := c.API.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: nodesAsked}); e.have("nodes", err) {
		e.nodes = list.Items
	}
	var refused []string
	var why error
	for _, id := range slices.Concat(configMaps(), e.agentConfigMaps()) {
		m, err := c.API.CoreV1().ConfigMaps(id[0]).Get(ctx, id[1], metav1.GetOptions{})
		switch {
		case err == nil:
			e.configMaps[id[1]] = m.Data
		case !IsNotFound(err):
			refused, why = append(refused, id[1]), err
		}
	}
	e.have("ConfigMaps "+strings.Join(slices.Compact(refused), ", "), why)
	e.pools = calicoObjects[ipPool](ctx, c, e, "ippools")
	e.felix = calicoObjects[felixConfiguration](ctx, c, e, "felixconfigurations")
	return e
}

// have notes what could not be read.
func (e *evidence) have(what string, err error) bool {
	if err != nil {
		e.unread = append(e.unread, fmt.Sprintf("%s: %v", what, err))
	}
	return err == nil
}

// calicoObjects reads objects of Calico's; a cluster that has no such kind has none.
func calicoObjects[T any](ctx context.Context, c *Client, e *evidence, resource string) []T {
	rest := c.API.Discovery().RESTClient()
	if rest == nil {
		return nil // a client of parts, without a server
	}
	list := func(path ...string) ([]byte, error) {
		answer := rest.Get().AbsPath(append([]string{"/apis"}, path...)...).Do(ctx)
		if err := answer.Error(); err != nil { // it has the server's own words
			return nil, err
		}
		return answer.Raw()
	}
	raw, newErr := list(calicoV3Group, "v3", resource)
	err := newErr
	if newErr != nil {
		raw, err = list(calicoGroup, "v1", resource)
	}
	switch {
	case IsNotFound(err) && IsNotFound(newErr):
		return nil
	case IsNotFound(err):
		e.have(resource+"."+calicoV3Group, newErr)
		return nil
	}
	var all struct {
		Items []T `json:"items"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if !e.have(resource+"."+calicoGroup, err) {
		return nil
	}
	return all.Items
}

// agent is the first container with one of the names in a DaemonSet that is
// wanted on any node.
func (e *evidence) agent(names ...string) *corev1.Container {
	for i := range e.daemonSets {
		ds := &e.daemonSets[i]
		if ds.Status.DesiredNumberScheduled == 0 {
			continue // Windows nodes', or switched off
		}
		for j := range ds.Spec.Template.Spec.Containers {
			if slices.Contains(names, ds.Spec.Template.Spec.Containers[j].Name) {
				return &ds.Spec.Template.Spec.Containers[j]
			}
		}
	}
	return nil
}

// version is the tag of an agent's image; "" where it has none.
func (e *evidence) version(agents []string) string {
	c := e.agent(agents...)
	if c == nil {
		return ""
	}
	image, _, _ := strings.Cut(c.Image, "@")
	_, tag, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !ok || tag == "latest" {
		return ""
	}
	return tag
}

// env is a variable of an agent's; "" where it is absent or not in the open.
func (e *evidence) env(agent, name string) string {
	if c := e.agent(agent); c != nil {
		for _, v := range c.Env {
			if v.Name == name {
				return v.Value
			}
		}
	}
	return ""
}

// flag is the value of --NAME=VALUE or --NAME VALUE of an agent's command line; "true"
// for a bare --NAME.
func (e *evidence) flag(agent, name string) string {
	c := e.agent(agent)
	if c == nil {
		return ""
	}
	argv := slices.Concat(c.Command, c.Args)
	for i, arg := range argv {
		flag, value, ok := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case flag != name || !strings.HasPrefix(arg, "-"):
		case ok:
			return value
		case i+1 < len(argv) && !strings.HasPrefix(argv[i+1], "-"):
			return argv[i+1]
		default:
			return "true"
		}
	}
	return ""
}

// annotation is a node's annotation where all nodes that have it agree; several
// tells where they do not.
func (e *evidence) annotation(name string) (value string, several bool) {
	for _, node := range e.nodes {
		v, ok := node.Annotations[name]
		if !ok {
			continue
		}
		if value != "" && v != value {
			return "", true
		}
		value = v
	}
	return value, false
}

// besideProxy is for a network that carries the ClusterIPs of pods out itself and
// leaves all other services to kube-proxy.
func (e *evidence) besideProxy(n *Network, who string) {
	e.proxy(n)
	if n.Mode.KubeProxy != "" {
		n.Mode.KubeProxy += ", but ClusterIPs for pods: " + who
	}
}

// proxy finds kube-proxy's mode, once.
func (e *evidence) proxy(n *Network) {
	if n.Mode.KubeProxy != "" || n.said("kube_proxy") {
		return
	}
	if _, ipvs := e.seen.Node.MTUs["kube-ipvs0"]; ipvs {
		n.Mode.KubeProxy = "ipvs"
		return
	}
	if mode := e.flag("kube-proxy", "proxy-mode"); mode != "" {
		n.Mode.KubeProxy = mode
		return
	}
	config, ok := e.configMaps["kube-proxy"]
	if !ok {
		n.lacks("kube_proxy", "there is neither a DaemonSet nor a ConfigMap kube-proxy that can be read: none, or part of another program")
		return
	}
	text := cmp.Or(config["config.conf"], e.configMaps["kube-proxy-config"]["config"]) // kubeadm's, EKS'
	if text == "" {
		n.lacks("kube_proxy", "its ConfigMap has no configuration under a name that is known")
		return
	}
	var parsed struct {
		Mode string `yaml:"mode"`
	}
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		n.lacks("kube_proxy", fmt.Sprintf("its ConfigMap is not understood: %v", err))
		return
	}
	if n.Mode.KubeProxy = parsed.Mode; parsed.Mode == "" {
		n.Mode.KubeProxy = "iptables" // its default on Linux
	}
}
