package traffic_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// standstill measures how long the machine halts: a thread on each processor
// wakes up every millisecond, before everything else where it has the right to, and adds up
// by how much it is late. A virtual machine's host stops its processors now and then, and
// its kernel counts only a part of that as stolen. The returned function ends the
// measurement and gives the time that each processor was late, summed over them.
func standstill(t *testing.T) func() time.Duration {
	t.Helper()
	const beat = time.Millisecond
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wait sync.WaitGroup
	late := make([]time.Duration, runtime.NumCPU())
	for cpu := range late {
		if !cpus.IsSet(cpu) {
			continue
		}
		wait.Go(func() {
			runtime.LockOSThread() // and never unlocked, so that the thread ends with its settings
			var own unix.CPUSet
			own.Set(cpu)
			_ = unix.SchedSetaffinity(0, &own)
			_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
			for {
				select {
				case <-stop:
					return
				default:
				}
				begin := time.Now()
				sleep := unix.NsecToTimespec(int64(beat))
				_ = unix.Nanosleep(&sleep, nil)
				if over := time.Since(begin) - beat; over > beat {
					late[cpu] += over
				}
			}
		})
	}
	return func() time.Duration {
		close(stop)
		wait.Wait()
		sum := time.Duration(0)
		for _, l := range late {
			sum += l
		}
		return sum
	}
}
