package testbed

import (
	"context"

	"github.com/cnibench/cnibench/internal/result"
)

// PodAdder is a testbed that can add pods while a campaign runs.
type PodAdder interface {
	// AddPods adds the cell's number of pods at once, waits until each answers,
	// and removes them. On an error none is left either.
	AddPods(ctx context.Context, cell result.Cell) (result.PodSetUp, error)
}

// NodeReader is a testbed that can read what the nodes under a cell hold: their
// rules and their memory (probes netfilter and memory).
type NodeReader interface {
	// WatchNodes reads the nodes of both ends a first time, outside of the measured
	// window, but for the probes that are left out. The func reads them again, after
	// it.
	WatchNodes(ctx context.Context, cell result.Cell, without []string) func(context.Context) NodeReadings
}

// NodeReadings are what was read of the nodes of both ends, by the names of
// docs/nodes.md. What could not be read is absent and has its reason.
type NodeReadings struct {
	Client, Server map[string]float64
	// Doubts says what went wrong, Absent what cannot be read here at all.
	Doubts, Absent []string
}

// EncryptionReader is a testbed that can verify that a cell's packets between nodes are
// encrypted.
type EncryptionReader interface {
	// WatchEncryption reads the counters of what encrypts a cell's packets, before its
	// traffic begins. The func reads them again after it: it gives what was encrypted, or
	// says why not all of it was. Both are nil where the cell has no encryption.
	WatchEncryption(ctx context.Context, cell result.Cell) func() (*result.Encryption, error)
}
