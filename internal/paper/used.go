package paper

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
)

// planned are the cells of a campaign, with what selectors of a paper mean of them.
type planned struct {
	file    string // the campaign's
	cells   []result.Cell
	factors []factors
	at      map[result.Cell]bool
	known   campaign.Known
}

func newPlanned(file string, cells []result.Cell, known campaign.Known) planned {
	p := planned{file: file, cells: cells, at: map[result.Cell]bool{}, known: known}
	for _, c := range cells {
		p.factors, p.at[c] = append(p.factors, factorsOf(c)), true
	}
	return p
}

// matching are the cells that a selector of single values means.
func (p planned) matching(s Selector) []result.Cell {
	s = s.onHost()
	var out []result.Cell
	for i, f := range p.factors {
		if s.matches(f) {
			out = append(out, p.cells[i])
		}
	}
	return out
}

// those are the cells that are used, in the order of the plan.
func (p planned) those(used map[result.Cell]bool) []result.Cell {
	var out []result.Cell
	for _, c := range p.cells {
		if used[c] {
			out = append(out, c)
		}
	}
	return out
}

// missingCell is the cure for a selector that means no cell.
func (p planned) missingCell() string {
	return fmt.Sprintf("add the cell to %s, or correct the selector", p.file)
}

// unclear names the factors in which cells differ that a selector does not name, and
// that it leaves open by mistake: "" where there is none.
func unclear(s Selector, cells []result.Cell, factor string) string {
	var names []string
	if len(cells) < 2 {
		return ""
	}
	var found []factors
	for _, c := range cells {
		found = append(found, factorsOf(c))
	}
	for _, name := range Factors() {
		if _, said := s[name]; said || name == factor {
			continue
		}
		values := map[string]bool{}
		differ := map[string]string{} // the value of each traffic, for conditions
		clash := false
		for i, f := range found {
			v := fmt.Sprint(f[name])
			values[v] = true
			traffic := fmt.Sprint(cells[i].Workload, " ", cells[i].Test, " ", cells[i].Protocol)
			before, had := differ[traffic]
			clash = clash || had && before != v
			differ[traffic] = v
		}
		// Another traffic has conditions of its own: they say nothing that it does not.
		condition := name == "congestion_control" || name == "cpus"
		if len(values) > 1 && (clash || !condition) {
			names = append(names, fmt.Sprintf("%s (%s)", name, strings.Join(slices.Sorted(maps.Keys(values)), ", ")))
		}
	}
	return strings.Join(names, ", ")
}

// foreign tells whether a selector names something that this program does not have, so
// that no campaign of it can have such a cell.
func (p planned) foreign(s Selector) bool {
	return s.unknown() != "" || unknownName(s, p.known) != ""
}

// of gives the cells that a claim compares, with their baselines where it is about
// efficiencies, and checks that each of its selectors means exactly one cell.
func (p planned) of(c *checker, i int, common Selector, claim Claim) []result.Cell {
	used := map[result.Cell]bool{}
	for _, s := range selectors(common, claim) {
		if p.foreign(s) || claim.Factor != "" && !slices.Contains(Factors(), claim.Factor) {
			continue
		}
		left := p.matching(s)
		if len(left) == 0 {
			c.fail(at("claims", i, "left"), p.missingCell(), "no cell of %s is meant by %s", p.file, s)
			continue
		}
		if names := unclear(s, left, claim.Factor); names != "" {
			c.fail(at("claims", i, "left"), "name one value, or write any", "several cells of %s are meant by one selector; it does not name %s", p.file, names)
			continue
		}
		for _, cell := range left {
			used[cell] = true
			for _, right := range claim.Right.each() {
				p.opponent(c, i, claim, cell, right, used)
			}
		}
	}
	if claim.Measure == efficiencyMeasure {
		for _, cell := range slices.Collect(maps.Keys(used)) {
			used[cell.Baseline()] = true
		}
	}
	return slices.SortedFunc(maps.Keys(used), result.Cell.Compare)
}

// opponent adds the right cell of a left one.
func (p planned) opponent(c *checker, i int, claim Claim, left result.Cell, right Selector, used map[result.Cell]bool) {
	if len(right) == 0 || p.foreign(right) {
		return
	}
	cell, err := change(left, right)
	if err != nil {
		c.fail(at("claims", i, "right"), "see the factors of a record", "%v", err)
		return
	}
	cell = claim.recordedAs(cell, right, p.cells)
	if !p.at[cell] {
		c.fail(at("claims", i, "right"), p.missingCell(), "%s has no cell %s", p.file, name(cell))
		return
	}
	used[cell] = true
}

// ofTable gives the cells of a table, and checks that each of its places means one.
func (p planned) ofTable(c *checker, i int, common Selector, t Table) []result.Cell {
	var used []result.Cell
	if t.Ours == nil {
		return nil
	}
	for k, row := range t.Rows {
		for _, column := range t.Columns {
			s := common.with(t.Ours.Cells, row.Cell, column.Cell)
			if p.foreign(s) {
				continue
			}
			where := append(at("tables", i), at("rows", k)...)
			switch found := p.matching(s); {
			case len(found) == 0:
				c.fail(where, p.missingCell(), "no cell of %s is meant by %s", p.file, s)
			case len(found) > 1:
				c.fail(where, "name one value", "several cells of %s are meant in column %s; it does not name %s", p.file, column.Name, unclear(s, found, ""))
			default:
				used = append(used, found[0])
				if t.Ours.Measure == efficiencyMeasure {
					used = append(used, found[0].Baseline())
				}
			}
		}
	}
	return used
}

// checkUsed says which cells the paper uses, and refuses a value of a factor in its
// campaign that none of them has.
func (p planned) checkUsed(used map[result.Cell]bool) error {
	seen := map[string]bool{}
	for cell := range used {
		for factor, v := range factorsOf(cell) {
			seen[fmt.Sprint(factor, "\x00", v)] = true
		}
	}
	unused := map[string]bool{}
	for _, f := range p.factors {
		for factor, v := range f {
			if !seen[fmt.Sprint(factor, "\x00", v)] {
				unused[fmt.Sprintf("%s %v", strings.ReplaceAll(factor, "_", " "), v)] = true
			}
		}
	}
	if len(unused) == 0 {
		return nil
	}
	return fmt.Errorf("%s: no claim, table or baseline uses a cell with %s; leave that out, or add the claim", p.file, strings.Join(slices.Sorted(maps.Keys(unused)), ", "))
}
