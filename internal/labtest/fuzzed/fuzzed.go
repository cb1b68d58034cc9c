// Package fuzzed bounds what one input may cost a fuzz target. A parser that reads what a
// stranger sent must not only survive it, but also answer soon and in little memory.
package fuzzed

import (
	"flag"
	"fmt"
	"runtime/metrics"
	"syscall"
	"testing"
	"time"
)

const (
	// maxProcessor is the processor time that one input may take. It is not wall time, so
	// that a loaded machine cannot fail a target.
	maxProcessor = time.Second
	// maxWall bounds an input that waits and uses no processor. It is longer, as an input
	// may also wait for a processor.
	maxWall = 5 * time.Second
	// maxAllocated is what one input may allocate in all, in bytes. What it had at any one
	// time is at most that. What the process has in memory would say less of the input: go's
	// own share is between 100 and 350 MiB.
	maxAllocated = 256 << 20
)

// Within is the first line of what a fuzz target calls for each input:
//
//	defer fuzzed.Within(t)()
//
// The function it returns fails the input that took more than a second of processor time or
// more than five seconds, or allocated more than 256 MiB. Both do nothing outside
// `go test -fuzz`, where other tests share the process.
func Within(t testing.TB) func() {
	worker := flag.Lookup("test.fuzzworker")
	if worker == nil || worker.Value.String() != "true" {
		return func() {}
	}
	before := used()
	return func() {
		if err := used().since(before); err != nil {
			t.Error(err)
		}
	}
}

// usage is what a process used until one moment.
type usage struct {
	wall      time.Time
	processor time.Duration // user and system, of all threads
	allocated uint64        // bytes of the heap, also those that were freed
}

func used() usage {
	u := usage{wall: time.Now()}
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err == nil {
		u.processor = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	heap := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(heap)
	u.allocated = heap[0].Value.Uint64()
	return u
}

// since says which limit was exceeded after an earlier moment.
func (u usage) since(before usage) error {
	if d := u.processor - before.processor; d > maxProcessor {
		return fmt.Errorf("this input took %v of processor time, more than %v", d, maxProcessor)
	}
	if d := u.wall.Sub(before.wall); d > maxWall {
		return fmt.Errorf("this input took %v, more than %v", d, maxWall)
	}
	if n := u.allocated - before.allocated; n > maxAllocated {
		return fmt.Errorf("this input allocated %d bytes, more than %d", n, maxAllocated)
	}
	return nil
}
