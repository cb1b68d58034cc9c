package baremetal

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/testbed"
)

// TestLost: an error of a host that is gone is one of the testbed's, what is in
// force there is not known any more, and the host is given up after a while.
func TestLost(t *testing.T) {
	var said []string
	b := &Testbed{tuned: tuning{"default_settings", 1500}, options: Options{Say: func(f string, _ ...any) { said = append(said, f) }}}
	var lost *testbed.LostError
	if err := b.lost(&HostError{Host: "a", Text: "no room"}); errors.As(err, &lost) || b.tuned == (tuning{}) {
		t.Errorf("a host that answers is lost: %v", err)
	}
	for _, gone := range []error{
		fmt.Errorf("profile x: %w", errors.Join(unreachable("a", "ssh: Connection refused"))),
		&HostError{Host: "a", Text: "is in use by another", Taken: true},
	} {
		b.tuned = tuning{"default_settings", 1500}
		if err := b.lost(gone); !errors.As(err, &lost) || !errors.Is(err, gone) || b.tuned != (tuning{}) {
			t.Errorf("%v is not lost, or what it has is taken for known", err)
		}
	}
	if err := b.givenUp(time.Now().Add(giveUpAfter / 2)); err != nil {
		t.Errorf("given up too early: %v", err)
	}
	if err := b.givenUp(time.Now().Add(giveUpAfter)); !errors.As(err, &lost) || !strings.Contains(err.Error(), "is in use by another; after 10m0s") {
		t.Errorf("not given up: %v", err)
	}
	if err := b.lost(nil); err != nil || len(said) != 1 || b.givenUp(time.Now().Add(time.Hour)) != nil {
		t.Errorf("it is back, and that is not known: %v, %q", err, said)
	}
}
