// Package plan turns a campaign into cells and seeded random blocks. Pure.
package plan

import "github.com/cnibench/cnibench/internal/result"

// Plan is plan.json: what will be measured, in which order.
type Plan struct {
	Schema int `json:"schema"`
	// Seed makes the order: the same seed and cells give the same blocks.
	Seed uint64 `json:"seed"`
	// Cells are all cells; cell i has the id c%03d of its index.
	Cells []result.Cell `json:"cells"`
	// MinBlocks and MaxBlocks bound the number of blocks.
	MinBlocks int `json:"min_blocks"`
	MaxBlocks int `json:"max_blocks"`
}
