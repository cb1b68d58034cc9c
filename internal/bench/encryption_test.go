package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
)

// sealing is a testbed that says of each network whether its packets were encrypted.
type sealing struct {
	*loopback
	plain string // the network whose packets were not
}

func (s sealing) WatchEncryption(_ context.Context, cell result.Cell) func() (*result.Encryption, error) {
	return func() (*result.Encryption, error) {
		if cell.Network == s.plain {
			return nil, errors.New("not encrypted: node1 sent 10 bytes in 1 packets on the link")
		}
		return &result.Encryption{Algorithm: "a", Implementation: "i", EncryptedBytes: 7}, nil
	}
}

// A sample whose packets were not encrypted fails with that reason, in one long window and
// in slices; the others have what was encrypted, and the baseline has nothing.
func TestUnencryptedSampleFails(t *testing.T) {
	labtest.Slow(t)
	for name, change := range map[string]func(Options) Options{"window": func(o Options) Options { return o }, "slices": sliced} {
		t.Run(name, func(t *testing.T) {
			store := &memory{}
			o := change(options(t, sealing{newLoopback(t), "macvlan"}, store))
			for i := range o.Plan.Cells {
				if !o.Plan.Cells[i].IsBaseline() {
					o.Plan.Cells[i].Encryption = result.EncryptionWireGuardGo
				}
			}
			if _, err := Run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			seen := map[string]int{}
			for _, s := range store.records {
				seen[s.Cell.Network+" "+s.Status]++
				switch {
				case s.Status == result.StatusFailed && s.Cell.Network == "macvlan":
					if s.Reason != "not encrypted: node1 sent 10 bytes in 1 packets on the link" || s.Metrics != nil || s.Encryption != nil {
						t.Errorf("%+v", s)
					}
				case s.Status == result.StatusOK && s.Cell.IsBaseline() != (s.Encryption == nil):
					t.Errorf("%s has %+v", s.Cell.Network, s.Encryption)
				}
			}
			if seen["macvlan ok"] > 0 || seen["macvlan failed"] == 0 || seen["bridge ok"] == 0 || seen["host ok"] == 0 {
				t.Errorf("%v", seen)
			}
		})
	}
}

// A testbed that cannot verify encryption measures no encrypted cell.
func TestEncryptionMustBeVerified(t *testing.T) {
	labtest.Slow(t)
	store := &memory{}
	o := options(t, newLoopback(t), store)
	o.Plan.Cells[1].Encryption = result.EncryptionIPsec
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, s := range store.records {
		if s.Cell.Encryption != "" && (s.Status != result.StatusFailed || s.Reason != "this testbed cannot verify that packets are encrypted: measure in the lab") {
			t.Errorf("%s: %s", s.Status, s.Reason)
		}
	}
}
