package kube

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/kube"
)

const (
	leaseName = "run"
	// leaseLife is how long a run counts as living that is not heard of any more,
	// renewEach how often it lets itself be heard.
	leaseLife = 2 * time.Minute
	renewEach = 20 * time.Second
)

// lease tells other commands that the run whose namespace it is in goes on.
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
	api := c.client.API.CoordinationV1().Leases(c.namespace(spot{}))
	made, err := api.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: c.object(leaseName), Labels: labels(c.run)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &life, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	if kube.IsNotFound(err) {
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
			now := metav1.NowMicro()
			next := made.DeepCopy()
			next.Spec.RenewTime = &now
			// One that is missed is made good by the next; where the namespace is
			// gone, the next sample finds out.
			if renewed, err := api.Update(ctx, next, metav1.UpdateOptions{}); err == nil {
				made = renewed
			}
		}
	}()
	return l, nil
}

func (l *lease) stop() {
	l.cancel()
	<-l.done
}

// self is who runs: "boot process start", by which a run that was killed on
// this machine is known at once.
func self() (string, error) {
	boot, err := bootID()
	if err != nil {
		return "", err
	}
	start, err := startOf(os.Getpid())
	return fmt.Sprintf("%s %d %s", boot, os.Getpid(), start), err
}

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}

// startOf is when a process began, in clock ticks after boot (proc_pid_stat(5),
// field 22): with its number it is one process for ever.
func startOf(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	// The name before may have blanks and brackets in it.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fields[19], nil
}

// goesOn tells whether the run of a lease still lives.
func goesOn(l *coordinationv1.Lease, now time.Time) bool {
	if l.Spec.HolderIdentity != nil {
		fields := strings.Fields(*l.Spec.HolderIdentity)
		boot, err := bootID()
		if err == nil && len(fields) == 3 && fields[0] == boot {
			pid, err := strconv.Atoi(fields[1])
			if err != nil {
				return false
			}
			start, err := startOf(pid)
			return err == nil && start == fields[2]
		}
	}
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second))
}

// dead are the namespaces of runs that do not go on.
func dead(ctx context.Context, client *kube.Client) ([]string, error) {
	list, err := client.API.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: managedBy + "=" + ours + "," + runLabel})
	if err != nil {
		return nil, client.Explain("look for what killed runs left", err)
	}
	var names []string
	asked := map[string]bool{} // of each run once: both its namespaces go or stay
	for _, ns := range list.Items {
		run := ns.Labels[runLabel]
		if ns.Name != namespaceOf(run, false) && ns.Name != namespaceOf(run, true) {
			continue // it has our labels and not our name: it is not ours
		}
		if isDead, known := asked[run]; known {
			if isDead {
				names = append(names, ns.Name)
			}
			continue
		}
		asked[run] = false
		l, err := client.API.CoordinationV1().Leases(namespaceOf(run, false)).Get(ctx, leaseName, metav1.GetOptions{})
		switch {
		case kube.IsNotFound(err):
			if time.Since(ns.CreationTimestamp.Time) < leaseLife && ns.DeletionTimestamp == nil {
				continue // it may be being made
			}
		case err != nil:
			return nil, client.Explain("read the lease of run "+run, err)
		case goesOn(l, time.Now()):
			continue
		}
		asked[run] = true
		names = append(names, ns.Name)
	}
	return names, nil
}

// clearDead begins to delete what killed runs left.
func (c *cluster) clearDead(ctx context.Context) error {
	if c.named.Namespace != "" {
		cleared, err := cleanWithin(ctx, c.client, c.named.Namespace)
		for _, what := range cleared {
			c.options.Say("cleared %s", what)
		}
		return err
	}
	names, err := dead(ctx, c.client)
	if err != nil || len(names) == 0 {
		return err
	}
	c.options.Say("cleared what a killed run left: %s", strings.Join(names, ", "))
	return deleteNamespaces(ctx, c.client, names)
}

// Clean deletes what killed runs left in a cluster, or within a namespace that is not
// theirs, and waits until it is gone. It says what that was: "namespace cnb-1a2b3c4d".
func Clean(ctx context.Context, client *kube.Client, namespace string) (cleared []string, err error) {
	if namespace != "" {
		return cleanWithin(ctx, client, namespace)
	}
	names, err := dead(ctx, client)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	for _, name := range names {
		cleared = append(cleared, "namespace "+name)
	}
	return cleared, remove(ctx, client, names)
}

func deleteNamespaces(ctx context.Context, client *kube.Client, names []string) error {
	for _, name := range names {
		err := client.API.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !kube.IsNotFound(err) && !kube.IsConflict(err) { // conflict: it is being deleted
			return client.Explain("delete namespace "+name, err)
		}
	}
	return nil
}

// remove deletes namespaces and waits for their end.
func remove(ctx context.Context, client *kube.Client, names []string) error {
	if err := deleteNamespaces(ctx, client, names); err != nil {
		return err
	}
	for _, name := range names {
		for {
			_, err := client.API.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			if kube.IsNotFound(err) {
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
