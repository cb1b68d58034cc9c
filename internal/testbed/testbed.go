// Package testbed says what a place to measure at must give. The lab, a
// Kubernetes and bare machines are below it.
package testbed

import (
	"context"
	"net/netip"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/result"
)

// Testbed is where a campaign runs.
type Testbed interface {
	// Build makes all that the cells need, at once. A cell that cannot be built
	// here is in the map with its reason; that is no error. On an error all is
	// taken down again.
	Build(ctx context.Context, cells []result.Cell) (unsupported map[result.Cell]string, err error)
	// Ends gives the two ends of a cell with live agents; agents that died are
	// started again.
	Ends(ctx context.Context, cell result.Cell) (Ends, error)
	// Environment describes what stands: kernel, CPU, versions, settings, and
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
	// ServerPort is what the server must serve on, where a service leads to it; 0:
	// any port.
	ServerPort uint16
	// TargetPort is what the client sends to where that is not what the server
	// serves on; 0: it is.
	TargetPort uint16
	// SharedClock tells that both ends read one clock.
	SharedClock bool
}

// Place is a spot where a program runs, with an agent in it.
type Place struct {
	Name string // "flannel/vxlan node1 pod1"
	Node string // the machine or node namespace under it
	// MTU is the actual MTU of the device towards the other end, bytes.
	MTU   int
	Agent *agent.Client
	// ToolsFrom says how a tool that is missing gets here; "": by the machine's
	// package manager.
	ToolsFrom string
	// Settings are the values in force, as just read, of what the campaign's
	// profiles ask for; Doubts says which settings of the cell's own did not take.
	Settings map[string]string
	Doubts   []string
}

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
