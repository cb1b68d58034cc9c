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
	// longer is made anew.
	podLife = 12 * 3600
)

// stand is a spot's pod with the agent in it.
type stand struct {
	spot spot
	// made counts its pods; pod is the present one's name.
	made      int
	pod       string
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

func (s *stand) address(family string) (netip.Addr, error) {
	for _, a := range s.addresses {
		if a.Is4() == (family == "ipv4") {
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%s has no %s address: it has %v", s.pod, family, s.addresses)
}

// mtu is that of the device which has the address, bytes; 0: it does not tell.
func (s *stand) mtu(family string) int {
	a, err := s.address(family)
	if err != nil {
		return 0
	}
	return s.facts.MTUs[s.facts.Addresses[a.String()]]
}

// makePod makes the next pod of a spot.
func (c *cluster) makePod(ctx context.Context, st *stand) error {
	st.made++
	st.pod, st.addresses = c.object(st.spot.name()), nil
	if st.made > 1 {
		st.pod += fmt.Sprintf("-again-%d", st.made)
	}
	pod := c.podOf(st.spot, st.pod)
	taken, err := c.client.API.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err == nil {
		c.limit(st, taken)
		return unfitting(taken)
	}
	if st.spot.host && kubeclient.IsForbidden(err) {
		c.noHost = c.client.Explain("make pod "+pod.Name, err).Error()
		c.options.Say("no pods in their node's network, so no baseline: %s", c.noHost)
		delete(c.stands, st.spot)
		return nil
	}
	return c.client.Explain("make pod "+pod.Name, err)
}

// podOf is a pod that passes Pod Security "restricted", but where it is in its
// node's network or was allowed to be privileged, and asks for nothing of the API server.
func (c *cluster) podOf(s spot, name string) *corev1.Pod {
	yes, no, life, grace, user := true, false, int64(podLife), int64(1), int64(image.User)
	meta := metav1.ObjectMeta{Name: name, Namespace: c.namespace(s), Labels: labels(c.run)}
	meta.Labels[endLabel], meta.Labels[roleLabel] = s.name(), s.role
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
		HostNetwork: s.host,
		Affinity:    c.whereTo(s),
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
func (c *cluster) limit(st *stand, pod *corev1.Pod) {
	st.limits = nil
	for name, quantity := range pod.Spec.Containers[0].Resources.Limits {
		if st.limits == nil {
			st.limits = map[string]string{}
		}
		st.limits[string(name)] = quantity.String()
	}
	if cpu, limited := st.limits["cpu"]; limited && !c.limited {
		c.limited = true
		c.options.Say("a LimitRange of namespace %s gives pods %s CPUs at most, which throttles what is measured", pod.Namespace, cpu)
	}
}

// whereTo leaves the scheduler a spot's node, or, while nodes are being found, one
// that has no pod of the run.
func (c *cluster) whereTo(s spot) *corev1.Affinity {
	if s.node > len(c.nodes) {
		return apart(c.run)
	}
	return onNode(c.nodes[s.node-1].Name)
}

// onNode leaves the scheduler one node; unlike spec.nodeName it still looks at
// taints and at what is free there.
func onNode(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}},
	}}}
}

// raise waits for a spot's pod and starts the agent in it.
func (c *cluster) raise(ctx context.Context, st *stand) error {
	pod, err := c.await(ctx, st)
	if err != nil {
		return err
	}
	st.node, st.addresses, st.start = pod.Spec.NodeName, nil, podStart(pod)
	for _, ip := range pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			st.addresses = append(st.addresses, a)
		}
	}
	st.hostIPs = nil
	for _, ip := range pod.Status.HostIPs {
		st.hostIPs = append(st.hostIPs, ip.IP)
	}
	if st.hostIPs == nil && pod.Status.HostIP != "" { // before Kubernetes 1.29
		st.hostIPs = []string{pod.Status.HostIP}
	}
	return c.startAgent(ctx, st)
}

func (c *cluster) startAgent(ctx context.Context, st *stand) error {
	ctx, cancel := context.WithTimeoutCause(ctx, greetWithin, fmt.Errorf("no greeting within %v", greetWithin))
	defer cancel()
	target := kubeclient.Target{Namespace: c.namespace(st.spot), Pod: st.pod, Container: container}
	p := c.client.Exec(ctx, target, []string{image.Program, "agent"})
	a, err := agent.NewClient(ctx, agent.Transport{Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Wait: p.Wait, Kill: p.Kill})
	if err != nil {
		return c.nodeToo(ctx, st, &agentError{fmt.Errorf("agent in pod %s: %w", st.pod, err)})
	}
	if err := c.sameVersion(st, a.Version()); err != nil {
		return errors.Join(err, a.Close())
	}
	if st.facts, err = a.Facts(ctx); err != nil {
		return errors.Join(fmt.Errorf("agent in pod %s: facts: %w", st.pod, err), a.Close())
	}
	st.agent = a
	return nil
}

// sameVersion refuses an agent of another version: what it measures is not what this
// program describes, though both speak one protocol. Of builds that have no version nobody
// can tell, which is said once.
func (c *cluster) sameVersion(st *stand, version string) error {
	if c.options.Version == "" || version == c.options.Version {
		return nil
	}
	text := fmt.Sprintf("image %s holds cnibench %s, and this program is %s", c.options.Image, cmp.Or(version, "of unknown version"), c.options.Version)
	for _, v := range []string{version, c.options.Version} {
		if v == "" || strings.Contains(v, "devel") || v == "unknown" {
			if !c.doubted {
				c.options.Say("%s: whether they are the same is not known", text)
			}
			c.doubted = true
			return nil
		}
	}
	return &PodError{Pod: st.pod, Node: st.node, Text: text, Cure: "give the nodes this program's own: cnibench image --to cnibench-image.tar, or name another one with --image"}
}

// nodeToo adds to an error what its node says of itself.
func (c *cluster) nodeToo(ctx context.Context, st *stand, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	node, nodeErr := c.client.API.CoreV1().Nodes().Get(ctx, st.node, metav1.GetOptions{})
	if nodeErr != nil {
		return err
	}
	if why := notReady(*node); why != "" {
		return fmt.Errorf("%w (node %s is not ready: %s)", err, st.node, why)
	}
	return err
}

// revive gives a spot with a living agent: it starts the agent, or the pod, or
// everything anew where they are gone.
func (c *cluster) revive(ctx context.Context, s spot) (*stand, error) {
	st := c.stands[s]
	if st == nil {
		return nil, fmt.Errorf("%s does not stand", s.name())
	}
	if st.agent != nil && st.agent.Alive() {
		return st, nil
	}
	if st.agent != nil {
		_ = st.agent.Close() // it is dead; why was the answer to its last call
		st.agent = nil
	}
	pods := c.client.API.CoreV1().Pods(c.namespace(s))
	pod, err := pods.Get(ctx, st.pod, metav1.GetOptions{})
	switch {
	case kubeclient.IsNotFound(err):
		gone, err := c.namespaceGone(ctx, s)
		if err != nil {
			return nil, err
		}
		if gone {
			c.options.Say("namespace %s was deleted: everything is created again", c.namespace(s))
			if err := c.again(ctx); err != nil {
				return nil, err
			}
			return c.revive(ctx, s)
		}
	case err != nil:
		return nil, c.client.Explain("look after pod "+st.pod, err)
	case pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning:
		return st, c.startAgent(ctx, st)
	case pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending:
		return st, c.raise(ctx, st)
	default:
		now := int64(0) // a service must not lead to it any more
		only := metav1.NewUIDPreconditions(string(pod.UID))
		if err := pods.Delete(ctx, st.pod, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: only}); err != nil && !kubeclient.IsNotFound(err) {
			return nil, c.client.Explain("delete pod "+st.pod, err)
		}
	}
	c.options.Say("pod %s is gone: it is created again", st.pod)
	if err := c.makePod(ctx, st); err != nil {
		return nil, err
	}
	return st, c.raise(ctx, st)
}

func (c *cluster) namespaceGone(ctx context.Context, s spot) (bool, error) {
	if c.named.Namespace != "" {
		return false, nil // it is not ours, and nothing is made anew in another
	}
	ns, err := c.client.API.CoreV1().Namespaces().Get(ctx, c.namespace(s), metav1.GetOptions{})
	if kubeclient.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, c.client.Explain("look after namespace "+c.namespace(s), err)
	}
	return ns.DeletionTimestamp != nil, nil
}

// again makes everything anew in other namespaces; what is left of those before
// goes.
func (c *cluster) again(ctx context.Context) error {
	for _, st := range c.stands {
		if st.agent != nil {
			_ = st.agent.Close() // its pod is being deleted
		}
	}
	c.lease.stop()
	if err := deleteNamespaces(ctx, c.client, []string{namespaceOf(c.run, false), namespaceOf(c.run, true)}); err != nil {
		return err
	}
	return c.make(ctx)
}
