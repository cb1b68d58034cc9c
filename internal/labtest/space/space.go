// Package space gives tests network namespaces of their own.
package space

import (
	"fmt"
	"hash/crc32"
	"os"
	"testing"

	"github.com/cnibench/cnibench/internal/netns"
)

// New makes a namespace that goes with the test. Each has another role in it. No other
// namespace on this machine has the same name, cnb-test-PID-TEST-ROLE: not that of another
// run of the test beside this one, and not that of one that was killed before.
func New(t testing.TB, role string) netns.NS {
	t.Helper()
	ns, err := netns.New(fmt.Sprintf("cnb-test-%d-%08x-%s", os.Getpid(), crc32.ChecksumIEEE([]byte(t.Name())), role))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ns.Delete(); err != nil {
			t.Error(err)
		}
	})
	return ns
}
