package paper

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// Selector says which cells are meant, factor by factor in the words of a
// record. The value is a text, a number, a truth value or a list of such. A
// factor that is empty, 0 or false is one that the cell does not have; any stands for
// every value.
type Selector map[string]any

// Factors are the names of a cell's factors, as records have them.
func Factors() []string {
	var names []string
	for f := range fields(reflect.TypeFor[result.Cell]()) {
		names = append(names, f.name)
	}
	return names
}

func (s Selector) names() []string { return slices.Sorted(maps.Keys(s)) }

// with is s with the factors of others in their places; later ones win.
func (s Selector) with(others ...Selector) Selector {
	out := Selector{}
	maps.Copy(out, s)
	for _, o := range others {
		maps.Copy(out, o)
	}
	return out
}

// each makes a selector of every combination of the values in lists.
func (s Selector) each() []Selector {
	out := []Selector{{}}
	for _, name := range s.names() {
		values, isList := s[name].([]any)
		if !isList {
			values = []any{s[name]}
		}
		var next []Selector
		for _, before := range out {
			for _, v := range values {
				next = append(next, before.with(Selector{name: v}))
			}
		}
		out = next
	}
	return out
}

// onHost drops what network host has one of, or none: on it every path is
// host-to-host, and it has neither services nor policies nor encryption.
func (s Selector) onHost() Selector {
	if s["network"] != result.HostNetwork {
		return s
	}
	out := s.with(Selector{"path": result.PathHostToHost})
	for _, name := range []string{"services", "service_proxy", "policies", "encryption"} {
		delete(out, name)
	}
	return out
}

// unknown is a factor that cells do not have, with a value that it would need;
// "" where there is none.
func (s Selector) unknown() string {
	known := Factors()
	for _, name := range s.names() {
		if !slices.Contains(known, name) && !empty(s[name]) {
			return name
		}
	}
	return ""
}

// matches tells whether a cell has the value of every factor.
func (s Selector) matches(cell factors) bool {
	for name, want := range s {
		have, ok := cell[name]
		switch {
		case want == anyValue:
		case !ok && !empty(want) && !granted(name, want):
			return false
		case ok && have != want:
			return false
		}
	}
	return true
}

// matchesAny tells whether a cell has one of the values of every factor.
func (s Selector) matchesAny(cell factors) bool {
	for _, one := range s.each() {
		if one.matches(cell) {
			return true
		}
	}
	return false
}

// granted tells a value that a record leaves out.
func granted(name string, value any) bool {
	return name == "family" && value == "ipv4" || name == "burst" && value == 1.0 || name == "block_size" && value == 64.0
}

func empty(v any) bool { return v == nil || v == "" || v == 0.0 || v == false }

// String writes the selector in one line, as YAML would have it.
func (s Selector) String() string {
	var parts []string
	for _, name := range s.names() {
		parts = append(parts, fmt.Sprintf("%s: %v", name, s[name]))
	}
	return strings.Join(parts, ", ")
}

// factors are a cell as a record has it.
type factors map[string]any

func factorsOf(c result.Cell) factors {
	out := factors{}
	text, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil { // a cell is texts and finite numbers, so that this cannot be
		return nil
	}
	return out
}

// cell is the cell that has these factors and nothing else.
func (f factors) cell() (result.Cell, error) {
	var c result.Cell
	text, err := json.Marshal(f)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if c.IsBaseline() {
		c = c.Baseline()
	}
	return c, err
}

// change is the cell with other values of some factors.
func change(c result.Cell, to Selector) (result.Cell, error) {
	f := factorsOf(c)
	maps.Copy(f, factors(to.onHost()))
	return f.cell()
}
