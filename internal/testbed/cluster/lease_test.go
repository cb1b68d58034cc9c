package cluster

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/kubeclient/kubetest"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
)

// cleanAtOnce is Clean with a clock that does not make the test wait.
func cleanAtOnce(t *testing.T, c *kubetest.Cluster, namespace string) ([]string, error) {
	t.Helper()
	k := fault.NewClock()
	return clean(t.Context(), c.Client(), namespace, &sightings{now: k.Now}, t.Logf, k.Sleep)
}

// leaseOf is a lease as a holder renewed it, by the holder's clock.
func leaseOf(holder string, renewed time.Time) *coordinationv1.Lease {
	life, at := int32(120), metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at, LeaseDurationSeconds: &life}}
}

// TestOwnersOfLeases: a process is looked up where its boot ID and PID namespace are
// ours. Two pods of one node share the boot ID and not the PIDs: of those, only what the
// observer sees of the lease decides.
func TestOwnersOfLeases(t *testing.T) {
	me, err := self()
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(me)
	if len(fields) != 4 || fields[1] == nowhere {
		t.Fatalf("this process is %q", me)
	}
	boot, namespace := fields[0], fields[1]
	for holder, want := range map[string]verdict{
		me:                                     alive, // its machine slept; it is this one
		boot + " " + namespace + " 1 1":        ended, // process 1 began at another time
		boot + " " + namespace + " 99999999 1": ended,
		boot + " pid:[1] 99999999 1":           unsure, // a pod beside this one
		boot + " - 99999999 1":                 unsure,
		boot + " 99999999 1":                   unsure, // as older versions wrote it
		boot + " " + namespace + " -1 1":       unsure,
		"elsewhere " + namespace + " 1 1":      unsure,
		"":                                     unsure,
	} {
		if got := lookUp(holder); got != want {
			t.Errorf("%q: %v, want %v", holder, got, want)
		}
	}
	if _, err := startOf(os.Getpid()); err != nil {
		t.Error(err)
	}
}

// TestClocksAreNotCompared: a holder's clock that is a year off, in either direction,
// neither kills its run nor keeps a dead one.
func TestClocksAreNotCompared(t *testing.T) {
	for _, off := range []time.Duration{-365 * 24 * time.Hour, 0, 365 * 24 * time.Hour} {
		k := fault.NewClock()
		s := &sightings{now: k.Now}
		remote := time.Now().Add(off)
		see := func() verdict { return s.judge("r", "", leaseOf("elsewhere pid:[1] 2 3", remote)) }
		step := func(d time.Duration) verdict {
			if err := k.Sleep(d); err != nil {
				t.Fatal(err)
			}
			return see()
		}
		if v := see(); v != unsure {
			t.Errorf("off by %v: at first sight %v", off, v)
		}
		if v := step(leaseLife - time.Second); v != unsure {
			t.Errorf("off by %v: before its life is over %v", off, v)
		}
		remote = remote.Add(renewEach)
		if v := step(0); v != alive {
			t.Errorf("off by %v: renewed, and %v", off, v)
		}
		if v := step(leaseLife - time.Second); v != alive {
			t.Errorf("off by %v: seen to be renewed a moment ago, and %v", off, v)
		}
		if v := step(time.Second); v != ended {
			t.Errorf("off by %v: not renewed for its life, and %v", off, v)
		}
	}
}

// TestCleanWaitsForOthers: the run of a pod on the same node, whose process is not
// visible here, lives while its lease changes; one whose lease does not is deleted.
func TestCleanWaitsForOthers(t *testing.T) {
	c := kubetest.New("a")
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	leases := c.API.CoordinationV1()
	for _, run := range []string{"beside", "silent"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cnb-" + run, Labels: labels(run)}}
		if _, err := c.API.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := leases.Leases(ns.Name).Create(t.Context(), leaseOf(boot+" pid:[1] 99999999 1", time.Now()), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	k, s := fault.NewClock(), &said{}
	beat := func(d time.Duration) error {
		_, err := leases.Leases("cnb-beside").Update(t.Context(), leaseOf(boot+" pid:[1] 99999999 1", time.Now()), metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		return k.Sleep(d)
	}
	cleared, err := clean(t.Context(), c.Client(), "", &sightings{now: k.Now}, s.say, beat)
	if err != nil || !slices.Equal(cleared, []string{"namespace cnb-silent"}) || !s.has("waiting up to") {
		t.Errorf("cleared %q, %v, said %q", cleared, err, s.lines)
	}
	if names := left(t, c); !slices.Equal(names, []string{"cnb-beside"}) {
		t.Errorf("left: %v", names)
	}
}

// TestKilledBeforeItsLease: a run that was killed after it created its namespace, and before
// its lease, is deleted at once where its process would be visible. One that is alive stays.
func TestKilledBeforeItsLease(t *testing.T) {
	c := kubetest.New("a")
	me, err := self()
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(me)
	for run, holder := range map[string]string{"killed": fields[0] + " " + fields[1] + " 99999999 1", "alive": me} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cnb-" + run, Labels: labels(run), Annotations: map[string]string{holderNote: holder}}}
		if _, err := c.API.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	cleared, unsure, err := clearOnce(t.Context(), c.Client(), "", &sightings{})
	if err != nil || !slices.Equal(cleared, []string{"namespace cnb-killed"}) || len(unsure) > 0 {
		t.Errorf("cleared %q, unsure of %q, %v", cleared, unsure, err)
	}
}

// TestRunsClearOthersLater: a run does not wait for what it is not sure of; it looks
// again when it ends.
func TestRunsClearOthersLater(t *testing.T) {
	c := kubetest.New("a")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cnb-other", Labels: labels("other")}}
	if _, err := c.API.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.API.CoordinationV1().Leases(ns.Name).Create(t.Context(), leaseOf("elsewhere pid:[1] 2 3", time.Now().Add(-time.Hour)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b, heard := open(t, c)
	k := fault.NewClock()
	b.clusters[0].sightings.now = k.Now
	if _, err := b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.IntraHost)}); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(left(t, c), "cnb-other") || !heard.has("may be alive") {
		t.Errorf("left %v, said %q", left(t, c), heard.lines)
	}
	if err := k.Sleep(leaseLife); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if names := left(t, c); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

// TestOnlyOursIsDeleted: a namespace that somebody created under a run's name, without its
// labels, stays, and every deletion names the one object that it is for.
func TestOnlyOursIsDeleted(t *testing.T) {
	labtest.Slow(t)
	c := kubetest.New("a")
	b, _ := open(t, c)
	cells := []result.Cell{cell(result.PathPodToPod, result.IntraHost)}
	if _, err := b.Prepare(t.Context(), cells); err != nil {
		t.Fatal(err)
	}
	name := namespaceOf(b.clusters[0].run, false)
	spaces := c.API.CoreV1().Namespaces()
	ns, err := spaces.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns.Labels, ns.UID = map[string]string{"team": "other"}, "another"
	if _, err := spaces.Update(t.Context(), ns, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if names := left(t, c); !slices.Equal(names, []string{name}) {
		t.Errorf("left %v, want %s", names, name)
	}

	within := team(t, "a")
	w, _ := openTeam(t, within, campaign.Cluster{})
	if _, err := w.Prepare(t.Context(), cells); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if loose := append(within.Unconditional, c.Unconditional...); len(loose) > 0 {
		t.Errorf("deleted by name alone: %v", loose)
	}
}

// TestRenewAfterALostAnswer: an update that was carried out, and whose answer was lost,
// does not make the next one fail. A lease that is somebody else's by now is not taken.
func TestRenewAfterALostAnswer(t *testing.T) {
	c := kubetest.New()
	api := c.API.CoordinationV1().Leases("cnb-r")
	mine := leaseOf("me", time.Unix(0, 0))
	mine.ResourceVersion = "0"
	made, err := api.Create(t.Context(), mine, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	c.Lose = func(verb, kind string) bool {
		n++
		return verb == "update" && kind == "leases" && n == 1
	}
	if _, err := renew(t.Context(), api, made); !apierrors.IsTimeout(err) {
		t.Fatalf("the answer that was lost: %v", err)
	}
	for range 2 {
		next, err := renew(t.Context(), api, made)
		if err != nil {
			t.Fatalf("the renewal after it: %v", err)
		}
		if !next.Spec.RenewTime.After(made.Spec.RenewTime.Time) {
			t.Errorf("renewed at %v, before %v", next.Spec.RenewTime, made.Spec.RenewTime)
		}
		made = next
	}
	if err := api.Delete(t.Context(), leaseName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	other := leaseOf("other", time.Unix(0, 0))
	other.ResourceVersion = "other"
	if _, err := api.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := renew(t.Context(), api, made); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("somebody else's lease: %v", err)
	}
}
