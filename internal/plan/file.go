package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/result"
)

// Load reads plan.json.
func Load(path string) (Plan, error) {
	data, err := result.ReadFile(path)
	if err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	p, err := Parse(data)
	if err != nil {
		return Plan{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Parse reads a plan as json.Marshal wrote it. It refuses unknown keys, a newer
// schema, and what no campaign could have made.
func Parse(data []byte) (Plan, error) {
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return Plan{}, fmt.Errorf("not a plan: %w", err)
	}
	if version.Schema < 1 || version.Schema > Schema {
		return Plan{}, fmt.Errorf("the plan has schema %d, this cnibench reads 1 to %d; use the version that wrote it", version.Schema, Schema)
	}
	var p Plan
	// Unmarshal has seen that nothing follows; a decoder can refuse unknown keys.
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return Plan{}, fmt.Errorf("not a plan: %w", err)
	}
	return p, p.validate()
}

func (p Plan) validate() error {
	switch {
	case len(p.Cells) == 0:
		return errors.New("the plan has no cells")
	case p.MinBlocks < 1 || p.MaxBlocks < p.MinBlocks:
		return fmt.Errorf("the plan has an impossible number of blocks: from %d to %d", p.MinBlocks, p.MaxBlocks)
	case !(p.SampleSeconds > 0) || !(p.WarmupSeconds >= 0):
		return fmt.Errorf("the plan has an impossible sample length: %g s after %g s of warm-up", p.SampleSeconds, p.WarmupSeconds)
	}
	first := make(map[result.Cell]int, len(p.Cells))
	for i, c := range p.Cells {
		if j, twice := first[c]; twice {
			return fmt.Errorf("the plan has cells %d and %d the same: %s", j, i, c.Describe())
		}
		first[c] = i
	}
	return nil
}
