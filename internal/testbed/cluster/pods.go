package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/image"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/result"
)

const (
	// container is the only one of a pod.
	container = "agent"
	// podLife ends a pod that nobody has deleted, seconds. One that is needed
	// longer is created again.
	podLife = 12 * 3600
)

// agentPod is the pod of an end, with the agent in it.
type agentPod struct {
	end end
	// made counts its pods; name is that of the present one.
	made      int
	name      string
	node      string
	addresses []netip.Addr
	agent     *agent.Client
	facts     agent.Facts
	start     *result.PodStart
	// hostIPs are the addresses of its node, limits what its pod was given by the
	// cluster, "cpu": "500m".
	hostIPs []string
	limits  map[string]string
	// away is since when no agent could be started; zero: one could.
	away time.Time
}

func (p *agentPod) address(family string) (netip.Addr, error) {
	for _, a := range p.addresses {
		if a.Is4() == (family == "ipv4") {
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%s has no %s address: it has %v", p.name, family, p.addresses)
}

// mtu is that of the device which has the address, bytes; 0: not reported.
func (p *agentPod) mtu(family string) int {
	a, err := p.address(family)
	if err != nil {
		return 0
	}
	return p.facts.MTUs[p.facts.Addresses[a.String()]]
}

// makePod creates the next pod of an end.
func (c *cluster) makePod(ctx context.Context, p *agentPod) error {
	p.made++
	p.name, p.addresses = c.object(p.end.name()), nil
	if p.made > 1 {
		p.name += fmt.Sprintf("-again-%d", p.made)
	}
	pod := c.podOf(p.end, p.name)
	taken, err := c.client.API.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err == nil {
		c.limit(p, taken)
		return unfitting(taken)
	}
	if p.end.host && kubeclient.IsForbidden(err) {
		c.noHost = c.client.Explain("make pod "+pod.Name, err).Error()
		c.options.Say("no pods in their node's network, so no baseline: %s", c.noHost)
		delete(c.pods, p.end)
		return nil
	}
	return c.client.Explain("make pod "+pod.Name, err)
}

// podOf is a pod that passes Pod Security "restricted", but where it is in its
// node's network or was allowed to be privileged, and asks for nothing of the API server.
func (c *cluster) podOf(e end, name string) *corev1.Pod {
	yes, no, life, grace, user := true, false, int64(podLife), int64(1), int64(image.User)
	meta := metav1.ObjectMeta{Name: name, Namespace: c.namespace(e), Labels: labels(c.run)}
	meta.Labels[endLabel], meta.Labels[roleLabel] = e.name(), e.role
	rights := &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, RunAsNonRoot: &yes, RunAsUser: &user,
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if c.options.Unconfined {
		rights.SeccompProfile.Type = corev1.SeccompProfileTypeUnconfined
	}
	if root := int64(0); c.options.Privileged { // capabilities alone are of no use to another user
		rights = &corev1.SecurityContext{Privileged: &yes, ReadOnlyRootFilesystem: &yes, RunAsUser: &root}
	}
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		HostNetwork: e.host,
		Affinity:    c.whereTo(e),
		Containers: []corev1.Container{{
			Name: container, Image: c.options.Image, ImagePullPolicy: corev1.PullIfNotPresent,
			Command: []string{image.Program, "agent", "--wait"},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}},
			SecurityContext: rights, VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
		}},
		Volumes:                       []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: &grace,
		ActiveDeadlineSeconds:         &life,
		AutomountServiceAccountToken:  &no,
		EnableServiceLinks:            &no,
		DNSPolicy:                     corev1.DNSDefault,
	}}
}

// limit notes what limits the cluster gave a pod, which asked for none.
func (c *cluster) limit(p *agentPod, pod *corev1.Pod) {
	p.limits = nil
	for name, quantity := range pod.Spec.Containers[0].Resources.Limits {
		if p.limits == nil {
			p.limits = map[string]string{}
		}
		p.limits[string(name)] = quantity.String()
	}
	if cpu, limited := p.limits["cpu"]; limited && !c.limited {
		c.limited = true
		c.options.Say("a LimitRange of namespace %s gives pods %s CPUs at most, which throttles what is measured", pod.Namespace, cpu)
	}
}

// whereTo leaves the scheduler an end's node, or, while nodes are being found, those
// without a pod of the run.
func (c *cluster) whereTo(e end) *corev1.Affinity {
	if e.node > len(c.nodes) {
		return apart(c.run)
	}
	return onNode(c.nodes[e.node-1].Name)
}

// onNode leaves the scheduler one node; unlike spec.nodeName it still looks at
// taints and at what is free there.
func onNode(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}},
	}}}
}

// raise waits for an end's pod and starts the agent in it.
func (c *cluster) raise(ctx context.Context, p *agentPod) error {
	pod, err := c.await(ctx, p)
	if err != nil {
		return err
	}
	p.node, p.addresses, p.start = pod.Spec.NodeName, nil, podStart(pod)
	for _, ip := range pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			p.addresses = append(p.addresses, a)
		}
	}
	p.hostIPs = nil
	for _, ip := range pod.Status.HostIPs {
		p.hostIPs = append(p.hostIPs, ip.IP)
	}
	if p.hostIPs == nil && pod.Status.HostIP != "" { // before Kubernetes 1.29
		p.hostIPs = []string{pod.Status.HostIP}
	}
	return c.startAgent(ctx, p)
}

func (c *cluster) startAgent(ctx context.Context, p *agentPod) error {
	ctx, cancel := context.WithTimeoutCause(ctx, greetWithin, fmt.Errorf("no greeting within %v", greetWithin))
	defer cancel()
	target := kubeclient.Target{Namespace: c.namespace(p.end), Pod: p.name, Container: container}
	process := c.client.Exec(ctx, target, []string{image.Program, "agent"})
	a, err := agent.NewClient(ctx, agent.Transport{Stdin: process.Stdin, Stdout: process.Stdout, Stderr: process.Stderr, Wait: process.Wait, Kill: process.Kill})
	if err != nil {
		return c.nodeToo(ctx, p, &agentError{fmt.Errorf("agent in pod %s: %w", p.name, err)})
	}
	if err := c.sameVersion(p, a.Version()); err != nil {
		return errors.Join(err, a.Close())
	}
	if p.facts, err = a.Facts(ctx); err != nil {
		return errors.Join(fmt.Errorf("agent in pod %s: facts: %w", p.name, err), a.Close())
	}
	p.agent = a
	return nil
}

// sameVersion refuses an agent of another version: what it measures is not what this
// program describes, though both speak one protocol. For builds without a version nobody
// knows, which is reported once.
func (c *cluster) sameVersion(p *agentPod, version string) error {
	if c.options.Version == "" || version == c.options.Version {
		return nil
	}
	text := fmt.Sprintf("image %s holds cnibench %s, and this program is %s", c.options.Image, cmp.Or(version, "of unknown version"), c.options.Version)
	for _, v := range []string{version, c.options.Version} {
		if v == "" || strings.Contains(v, "devel") || v == "unknown" {
			c.doubted.Do(func() { c.options.Say("%s: whether they are the same is not known", text) })
			return nil
		}
	}
	return &PodError{Pod: p.name, Node: p.node, Text: text, Cure: "give the nodes this program's own: cnibench image --to cnibench-image.tar, or name another one with --image"}
}

// nodeToo adds to an error what its node reports about itself.
func (c *cluster) nodeToo(ctx context.Context, p *agentPod, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	node, nodeErr := c.client.API.CoreV1().Nodes().Get(ctx, p.node, metav1.GetOptions{})
	if nodeErr != nil {
		return err
	}
	if why := notReady(*node); why != "" {
		return fmt.Errorf("%w (node %s is not ready: %s)", err, p.node, why)
	}
	return err
}

// revive gives the pod of an end with a living agent. It starts the agent again, creates
// the pod again, or everything, where they are gone.
func (c *cluster) revive(ctx context.Context, e end) (*agentPod, error) {
	p := c.pods[e]
	if p == nil {
		return nil, fmt.Errorf("%s is not running", e.name())
	}
	if p.agent != nil && p.agent.Alive() {
		return p, nil
	}
	if p.agent != nil {
		_ = p.agent.Close() // it is dead; why was the answer to its last call
		p.agent = nil
	}
	pods := c.client.API.CoreV1().Pods(c.namespace(e))
	pod, err := pods.Get(ctx, p.name, metav1.GetOptions{})
	switch {
	case kubeclient.IsNotFound(err):
		gone, err := c.namespaceGone(ctx, e)
		if err != nil {
			return nil, err
		}
		if gone {
			c.options.Say("namespace %s was deleted: everything is created again", c.namespace(e))
			if err := c.again(ctx); err != nil {
				return nil, err
			}
			return c.revive(ctx, e)
		}
	case err != nil:
		return nil, c.client.Explain("look after pod "+p.name, err)
	case pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning:
		return p, c.startAgent(ctx, p)
	case pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending:
		return p, c.raise(ctx, p)
	default:
		now := int64(0) // a service must not send to it any more
		only := metav1.NewUIDPreconditions(string(pod.UID))
		if err := pods.Delete(ctx, p.name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: only}); err != nil && !kubeclient.IsNotFound(err) {
			return nil, c.client.Explain("delete pod "+p.name, err)
		}
	}
	c.options.Say("pod %s is gone: it is created again", p.name)
	if err := c.makePod(ctx, p); err != nil {
		return nil, err
	}
	return p, c.raise(ctx, p)
}

func (c *cluster) namespaceGone(ctx context.Context, e end) (bool, error) {
	if c.named.Namespace != "" {
		return false, nil // it is not ours, and nothing is created in another
	}
	ns, err := c.client.API.CoreV1().Namespaces().Get(ctx, c.namespace(e), metav1.GetOptions{})
	if kubeclient.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, c.client.Explain("look after namespace "+c.namespace(e), err)
	}
	return ns.DeletionTimestamp != nil, nil
}

// again creates everything again in other namespaces, and deletes what is left of those
// before.
func (c *cluster) again(ctx context.Context) error {
	for _, p := range c.pods {
		if p.agent != nil {
			_ = p.agent.Close() // its pod is being deleted
		}
	}
	c.lease.stop()
	if err := deleteNamespaces(ctx, c.client, []string{namespaceOf(c.run, false), namespaceOf(c.run, true)}); err != nil {
		return err
	}
	return c.make(ctx)
}
