package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/kubeclient"
)

// verdict is what is known of a run that another process may own.
type verdict int

const (
	// unsure: it may be alive, and its lease was not looked at for long enough.
	unsure verdict = iota
	alive
	ended
)

// sightEach is how long an observer of leases waits before it looks again.
const sightEach = renewEach / 2

// self identifies this process for whoever finds its lease: "boot namespace process
// start". Only who has the same boot ID and the same PID namespace can look the process
// up: two pods of one node share the boot ID and not the PID namespace.
func self() (string, error) {
	if runtime.GOOS != "linux" { // without /proc: nobody can look the process up, and its Lease decides
		return fmt.Sprintf("%s %s %d %d", nowhere, nowhere, os.Getpid(), time.Now().UnixNano()), nil
	}
	boot, err := bootID()
	if err != nil {
		return "", err
	}
	start, err := startOf(os.Getpid())
	return fmt.Sprintf("%s %s %d %s", boot, pidNamespace(), os.Getpid(), start), err
}

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}

// nowhere is a PID namespace that nobody is in.
const nowhere = "-"

// pidNamespace identifies this process's PID namespace among those of its kernel. It is
// nowhere where /proc shows the processes of another one.
func pidNamespace() string {
	shown, err := os.Readlink("/proc/self")
	if err != nil || shown != strconv.Itoa(os.Getpid()) {
		return nowhere
	}
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return nowhere
	}
	return name
}

var errEnded = errors.New("the process has ended")

// startOf is when a process began, in clock ticks after boot (proc_pid_stat(5),
// field 22): with its number it is one process for ever. The error of one that has
// ended is errEnded; a process that /proc hides has another error.
func startOf(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		// hidepid hides the processes of other users; kill(2) does not.
		if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return "", errEnded
		}
		return "", err
	}
	// The name before may have blanks and brackets in it.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", errEnded
	}
	return fields[19], nil
}

// lookUp judges the holder of a lease or a namespace by its process, where that would be
// visible here.
func lookUp(holder string) verdict {
	fields := strings.Fields(holder)
	boot, err := bootID()
	if err != nil || len(fields) != 4 || fields[0] != boot || fields[1] != pidNamespace() || fields[1] == nowhere {
		return unsure
	}
	pid, err := strconv.Atoi(fields[2])
	if err != nil || pid <= 0 {
		return unsure
	}
	switch start, err := startOf(pid); {
	case errors.Is(err, errEnded):
		return ended
	case err != nil:
		return unsure
	case start != fields[3]:
		return ended
	}
	return alive
}

// sightings are what one observer saw of runs' leases, by its own clock alone: clocks of
// two machines are never compared, as in the leader election of Kubernetes.
type sightings struct {
	// now is the observer's clock, which must be monotonic; nil: time.Now.
	now  func() time.Time
	seen map[string]sighting // by run
}

// sighting is a version of a lease and since when the observer has seen no other.
type sighting struct {
	version string
	since   time.Time
	first   bool // no other version was ever seen
}

// judge reports whether the run of a lease is alive. A nil lease is that of a run that has
// none: it may be about to be created, by the holder that its namespace names.
func (s *sightings) judge(run, holder string, l *coordinationv1.Lease) verdict {
	life := leaseLife
	version := ""
	if l != nil && l.Spec.HolderIdentity != nil {
		holder = *l.Spec.HolderIdentity
	}
	if v := lookUp(holder); v != unsure {
		return v
	}
	if l != nil {
		if d := l.Spec.LeaseDurationSeconds; d != nil {
			life = max(life, min(time.Duration(*d)*time.Second, 10*leaseLife))
		}
		version = fmt.Sprint(l.UID, " ", l.ResourceVersion, " ", l.Spec.RenewTime)
	}
	clock := s.now
	if clock == nil {
		clock = time.Now
	}
	now := clock()
	before, known := s.seen[run]
	if !known || before.version != version {
		if s.seen == nil {
			s.seen = map[string]sighting{}
		}
		s.seen[run] = sighting{version, now, !known}
		if known {
			return alive
		}
		return unsure
	}
	switch {
	case now.Sub(before.since) >= life:
		return ended
	case before.first:
		return unsure
	}
	return alive
}

// dead are the namespaces of runs that have ended; of the runs in open nobody knows yet.
func dead(ctx context.Context, client *kubeclient.Client, s *sightings) (names, open []string, err error) {
	list, err := client.API.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: managedBy + "=" + ours + "," + runLabel})
	if err != nil {
		return nil, nil, client.Explain("look for what killed runs left", err)
	}
	asked := map[string]verdict{} // of each run once: both its namespaces go or stay
	for _, ns := range list.Items {
		run := ns.Labels[runLabel]
		if !isOurs(&ns) {
			continue // it has our labels and not our name: it is not ours
		}
		v, known := asked[run]
		if !known {
			l, err := client.API.CoordinationV1().Leases(namespaceOf(run, false)).Get(ctx, leaseName, metav1.GetOptions{})
			if kubeclient.IsNotFound(err) {
				l, err = nil, nil
			}
			if err != nil {
				return nil, nil, client.Explain("read the lease of run "+run, err)
			}
			v = s.judge(run, ns.Annotations[holderNote], l)
			if l == nil && ns.DeletionTimestamp != nil {
				v = ended // somebody deletes it, which is waited for
			}
			asked[run] = v
			if v == unsure {
				open = append(open, run)
			}
		}
		if v == ended {
			names = append(names, ns.Name)
		}
	}
	return names, open, nil
}
