// Package testbed defines what a measurement environment must implement. Its
// implementations are in the folders below: lab, cluster and baremetal.
//
// Testbed is what each of them implements. The interfaces after it are optional: the loop
// (package bench) asks for one by a type assertion when a campaign needs it, and records
// what is missing if the testbed does not implement it.
package testbed

import (
	"context"
	"net/netip"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/result"
)

// Testbed is where a campaign runs.
type Testbed interface {
	// Build creates everything that the cells need, at once. A cell that cannot be built
	// here is in the map with its reason; that is no error. On an error everything is
	// taken down again.
	Build(ctx context.Context, cells []result.Cell) (unsupported map[result.Cell]string, err error)
	// Ends gives the two ends of a cell with live agents; agents that died are
	// started again.
	Ends(ctx context.Context, cell result.Cell) (Ends, error)
	// Environment describes what was built: kernel, CPU, versions, settings, and
	// for each place its facts.
	Environment(ctx context.Context) (result.Environment, error)
	// Close takes everything down, joining the errors on the way.
	Close(ctx context.Context) error
}

// Ends is where a sample of a cell runs.
type Ends struct {
	Client, Server Place
	// ServerAddress is where the client sends to.
	ServerAddress netip.Addr
	// ServerPort is what the server must serve on, if the client reaches it by a
	// service; 0: any port.
	ServerPort uint16
	// TargetPort is what the client sends to if that is not what the server
	// serves on; 0: it is.
	TargetPort uint16
	// Proxied means that the server sees its connections come from another address than the
	// client's.
	Proxied bool
	// Carried means that programs in user space carry packets between the ends.
	Carried bool
	// SharedClock means that both ends read one clock.
	SharedClock bool
}

// Place is where one end of a sample runs: a pod, a namespace or a machine with an agent
// in it.
type Place struct {
	Name string // "flannel/vxlan node1 pod1"
	Node string // the machine or node namespace under it
	// MTU is the actual MTU of the device towards the other end, bytes.
	MTU   int
	Agent *agent.Client
	// ToolsFrom says how a missing tool can be installed here; "": by the machine's
	// package manager.
	ToolsFrom string
	// Settings are the values in force, as just read, of what the campaign's
	// profiles ask for; Doubts says which settings of the cell's own did not take
	// effect.
	Settings map[string]string
	Doubts   []string
}

// LostError reports that a machine of the testbed is gone, and with it every sample
// that needs it, until somebody repairs it.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap is what happened to the machine.
func (e *LostError) Unwrap() error { return e.Err }

// Gatherer is a testbed that has a place for each rank of a workload with many ends.
type Gatherer interface {
	// Ranks gives the places of a cell's ranks, in their order, with live agents; those
	// that died are started again. No two ranks share an agent.
	Ranks(ctx context.Context, cell result.Cell) ([]Rank, error)
}

// Rank is where one rank of a job runs.
type Rank struct {
	Place
	// Address is where other ranks connect to.
	Address netip.Addr
}

// PodAdder is a testbed that can add pods while a campaign runs.
type PodAdder interface {
	// AddPods adds the cell's number of pods at once, waits until each answers,
	// and removes them. On an error none is left either.
	AddPods(ctx context.Context, cell result.Cell) (result.PodSetUp, error)
}

// ServiceUpdater is a testbed that can change a service while traffic goes to it.
type ServiceUpdater interface {
	// UpdateService has the service that a cell measures lead to another port of the same
	// pod, on the node of the client. It returns when the service proxy is through, with
	// when it began on the clock of the places, and how long it took.
	UpdateService(ctx context.Context, cell result.Cell, port uint16) (result.ServiceChange, error)
}

// NodeReader is a testbed that can read what the nodes under a cell hold: their
// rules and their memory (probes netfilter and memory).
type NodeReader interface {
	// WatchNodes reads the nodes of both ends a first time, before the measured window,
	// except for the probes in without. The func that it returns reads them again, after
	// the window.
	WatchNodes(ctx context.Context, cell result.Cell, without []string) func(context.Context) NodeReadings
}

// NodeReadings are what was read of the nodes of both ends, by the names of
// docs/nodes.md. What could not be read is absent and has its reason.
type NodeReadings struct {
	Client, Server map[string]float64
	// Doubts says what went wrong, Absent what cannot be read here at all.
	Doubts, Absent []string
}

// Grouper is a testbed that may not have all of its networks at the same time.
type Grouper interface {
	// Groups returns how many groups of cells there are, and which one a cell is in, from
	// 0 on. Cells of one group are measured in the same blocks, group after group; one
	// group is all cells.
	Groups() (n int, of func(result.Cell) int)
	// Switch replaces the present group by another. An error is why none of its cells
	// can be measured; what commands printed comes with it.
	Switch(ctx context.Context, group int) ([]Printed, error)
}

// Printed is what a command printed.
type Printed struct {
	// Name is unique among the commands of the campaign: "switch-cilium-1".
	Name           string
	Argv           []string
	Stdout, Stderr string
}

// PathVerifier is a testbed that can verify that a cell's traffic takes the way that its
// network has for it.
type PathVerifier interface {
	// WatchPath reads counters before the traffic begins. The func reads them again after it;
	// its error says what did not take that way.
	WatchPath(ctx context.Context, cell result.Cell) func(context.Context) error
}

// EncryptionReader is a testbed that can verify that a cell's packets between nodes are
// encrypted.
type EncryptionReader interface {
	// WatchEncryption reads the counters of what encrypts a cell's packets, before its
	// traffic begins. The func reads them again after it: it gives what was encrypted, or
	// says why not all of it was. Both are nil where the cell has no encryption.
	WatchEncryption(ctx context.Context, cell result.Cell) func() (*result.Encryption, error)
}
