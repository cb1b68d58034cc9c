package testbed

import (
	"context"

	"github.com/cnibench/cnibench/internal/result"
)

// Grouper is a testbed that may not have all of its networks at the same time.
type Grouper interface {
	// Groups is how many groups of cells there are, and which one a cell is in, from
	// 0 on. Cells of one group are measured in the same blocks, group after group; one
	// group is all cells.
	Groups() (n int, of func(result.Cell) int)
	// Switch makes a group stand in place of the one before. An error is why none of
	// it can be measured; what commands printed comes with it.
	Switch(ctx context.Context, group int) ([]Printed, error)
}

// Printed is what a command printed.
type Printed struct {
	// Name tells it from the others of the campaign: "switch-cilium-1".
	Name           string
	Argv           []string
	Stdout, Stderr string
}
