package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/kubeclient"
)

const (
	leaseName = "run"
	// leaseLife is how long a run counts as living that is not heard of any more,
	// renewEach how often it lets itself be heard.
	leaseLife = 2 * time.Minute
	renewEach = 20 * time.Second
)

// lease shows other commands that the run whose namespace it is in is alive.
type lease struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// startLease makes the lease and renews it until it is stopped.
func (c *cluster) startLease(ctx context.Context) (*lease, error) {
	holder, err := self()
	if err != nil {
		return nil, err
	}
	life, now := int32(leaseLife.Seconds()), metav1.NowMicro()
	api := c.client.API.CoordinationV1().Leases(c.namespace(end{}))
	made, err := api.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: c.object(leaseName), Labels: labels(c.run)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &life, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	if kubeclient.IsNotFound(err) {
		return nil, fmt.Errorf("there is no namespace %s: --namespace, and namespace in the campaign's clusters, require an existing one", c.named.Namespace)
	}
	if err != nil {
		return nil, c.client.Explain("make the lease of the run", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &lease{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(renewEach):
			}
			// The next renewal makes up for one that failed; where the namespace is
			// gone, the next sample finds out.
			if renewed, err := renew(ctx, api, made); err == nil {
				made = renewed
			}
		}
	}()
	return l, nil
}

// leases are what renew needs of the API server.
type leases interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, l *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// renew writes that the holder of a lease lives, and returns the lease as it is then. An
// update whose answer was lost leaves an older version in our hands, with which all
// later updates would conflict: then the lease is read again. It stays ours only while
// it has our UID and holder.
func renew(ctx context.Context, api leases, made *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	write := func(from *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		now, next := metav1.NowMicro(), from.DeepCopy()
		next.Spec.RenewTime = &now
		return api.Update(ctx, next, metav1.UpdateOptions{})
	}
	renewed, err := write(made)
	if !kubeclient.IsConflict(err) {
		return renewed, err
	}
	current, err := api.Get(ctx, made.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if current.UID != made.UID || current.Spec.HolderIdentity == nil || *current.Spec.HolderIdentity != *made.Spec.HolderIdentity {
		return nil, fmt.Errorf("lease %s belongs to another run now", made.Name)
	}
	return write(current)
}

func (l *lease) stop() {
	l.cancel()
	<-l.done
}

// clearDead begins to delete what killed runs left. Runs that only their leases can identify
// as ended are looked at again when this run ends (clearLater).
func (c *cluster) clearDead(ctx context.Context) error {
	cleared, unsure, err := clearOnce(ctx, c.client, c.named.Namespace, &c.sightings)
	for _, what := range cleared {
		c.options.Say("cleared what a killed run left: %s", what)
	}
	c.unsure = len(unsure) > 0
	if c.unsure {
		c.options.Say("runs of other machines may be alive and are left alone: %s; this run looks again when it ends, cnibench clean waits until it is sure", strings.Join(unsure, ", "))
	}
	return err
}

// clearLater deletes what is left of runs that clearDead was not sure of and that were
// not heard of since.
func (c *cluster) clearLater(ctx context.Context) {
	if !c.unsure {
		return
	}
	cleared, _, err := clearOnce(ctx, c.client, c.named.Namespace, &c.sightings)
	for _, what := range cleared {
		c.options.Say("cleared what a killed run left: %s", what)
	}
	if err != nil {
		c.options.Say("what killed runs left was not cleared: %v", err)
	}
}

// clearOnce begins to delete what is left of runs that have ended, in their own
// namespaces or within one. It returns what that was, and the runs that may be alive.
func clearOnce(ctx context.Context, client *kubeclient.Client, namespace string, s *sightings) (cleared, unsure []string, err error) {
	if namespace != "" {
		return cleanWithin(ctx, client, namespace, s)
	}
	names, unsure, err := dead(ctx, client, s)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		cleared = append(cleared, "namespace "+name)
	}
	return cleared, unsure, deleteNamespaces(ctx, client, names)
}

// ObservedFor is how long Clean may look at a run of another machine before it knows
// whether that is alive.
const ObservedFor = leaseLife + sightEach

// Clean deletes what killed runs left in a cluster, or within a namespace that is not
// theirs, and waits until it is gone. It returns what that was: "namespace
// cnb-1a2b3c4d". A run of another machine counts as ended when its lease has not
// changed while Clean looked at it for ObservedFor; say reports that wait.
func Clean(ctx context.Context, client *kubeclient.Client, namespace string, say func(format string, args ...any)) (cleared []string, err error) {
	return clean(ctx, client, namespace, &sightings{}, say, func(d time.Duration) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d):
			return nil
		}
	})
}

func clean(ctx context.Context, client *kubeclient.Client, namespace string, s *sightings, say func(string, ...any), wait func(time.Duration) error) (cleared []string, err error) {
	for said := false; ; {
		now, unsure, err := clearOnce(ctx, client, namespace, s)
		cleared = append(cleared, now...)
		if err != nil {
			return cleared, err
		}
		if len(unsure) == 0 {
			break
		}
		if !said {
			say("waiting up to %v to see whether runs of other machines are alive: %s", ObservedFor, strings.Join(unsure, ", "))
		}
		said = true
		if err := wait(sightEach); err != nil {
			return cleared, fmt.Errorf("see whether runs %s are alive: %w", strings.Join(unsure, ", "), err)
		}
	}
	var names []string
	for _, what := range cleared {
		if name, is := strings.CutPrefix(what, "namespace "); is && namespace == "" {
			names = append(names, name)
		}
	}
	return slices.Compact(cleared), remove(ctx, client, names)
}

// isOurs reports whether a namespace carries the labels and the name that a run gives its
// own.
func isOurs(ns *corev1.Namespace) bool {
	run := ns.Labels[runLabel]
	return ns.Labels[managedBy] == ours && run != "" && (ns.Name == namespaceOf(run, false) || ns.Name == namespaceOf(run, true))
}

// deleteNamespaces begins to delete namespaces. One that does not carry a run's labels is
// left alone, and so is one that somebody creates under the same name meanwhile.
func deleteNamespaces(ctx context.Context, client *kubeclient.Client, names []string) error {
	api := client.API.CoreV1().Namespaces()
	for _, name := range names {
		ns, err := api.Get(ctx, name, metav1.GetOptions{})
		if kubeclient.IsNotFound(err) || err == nil && !isOurs(ns) {
			continue
		}
		if err == nil {
			err = api.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(ns.UID))})
		}
		if err != nil && !kubeclient.IsNotFound(err) && !kubeclient.IsConflict(err) { // conflict: it is being deleted, or is another one
			return client.Explain("delete namespace "+name, err)
		}
	}
	return nil
}

// remove deletes namespaces and waits for their end.
func remove(ctx context.Context, client *kubeclient.Client, names []string) error {
	if err := deleteNamespaces(ctx, client, names); err != nil {
		return err
	}
	for _, name := range names {
		for {
			ns, err := client.API.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			if kubeclient.IsNotFound(err) || err == nil && !isOurs(ns) {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("namespace %s: %w; later: cnibench clean", name, context.Cause(ctx))
			case <-time.After(poll):
			}
		}
	}
	return nil
}
