package paper

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/campaign"
)

// checker collects what a schema cannot say.
type checker struct {
	tree *campaign.Tree
	errs []*campaign.Error
}

func (c *checker) fail(where []string, hint, format string, args ...any) {
	c.errs = append(c.errs, c.tree.ErrorAt(where, hint, fmt.Sprintf(format, args...)))
}

func at(list string, i int, more ...string) []string {
	return append([]string{list, strconv.Itoa(i)}, more...)
}

func checkPublication(tree *campaign.Tree, id string, p Publication) []*campaign.Error {
	c := &checker{tree: tree}
	if p.ID != id {
		c.fail([]string{"id"}, "the folder and the id are one name", "expected %q, found %q", id, p.ID)
	}
	c.selector([]string{"cells"}, p.Cells)
	seen := map[string]bool{}
	for i, t := range p.Tables {
		if seen[t.ID] {
			c.fail(at("tables", i, "id"), "give it another", "%q is the id of a table before", t.ID)
		}
		seen[t.ID] = true
		c.table(i, t)
	}
	return c.errs
}

func (c *checker) table(i int, t Table) {
	if t.Ours != nil {
		c.selector(at("tables", i, "ours", "cells"), t.Ours.Cells)
		if len(t.Rows) == 0 || len(t.Columns) == 0 {
			c.fail(at("tables", i), "name what the cells are of", "expected rows and columns")
		}
	}
	for k, column := range t.Columns {
		c.selector(append(at("tables", i), at("columns", k, "cell")...), column.Cell)
	}
	for k, row := range t.Rows {
		where := append(at("tables", i), at("rows", k)...)
		c.selector(append(slices.Clone(where), "cell"), row.Cell)
		for key, n := range map[string]int{"values": len(row.Values), "upto": len(row.UpTo)} {
			if n > 0 && n != len(t.Columns) {
				c.fail(append(slices.Clone(where), key), "null stands for a value that is not told", "expected %d values, one a column, found %d", len(t.Columns), n)
			}
		}
	}
}

func checkClaims(tree *campaign.Tree, claims Claims) []*campaign.Error {
	c := &checker{tree: tree}
	seen := map[string]bool{}
	for i, claim := range claims.Claims {
		if seen[claim.ID] {
			c.fail(at("claims", i, "id"), "give it another", "%q is the id of a claim before", claim.ID)
		}
		seen[claim.ID] = true
		c.selector(at("claims", i, "left"), claim.Left)
		c.selector(at("claims", i, "right"), claim.Right)
		if claim.Relation == ratioWithin && (len(claim.Range) != 2 || claim.Range[0] <= 0 || claim.Range[1] < claim.Range[0]) {
			c.fail(at("claims", i, "range"), "write [least, largest], both above 0", "expected two ratios, the lower first")
		}
		if claim.Factor != "" {
			c.factor(at("claims", i, "factor"), claim.Factor)
		}
		c.superfluous(i, claim)
	}
	return c.errs
}

// superfluous refuses keys that the relation does not look at.
func (c *checker) superfluous(i int, claim Claim) {
	given := map[string]bool{"right": claim.Right != nil, "range": claim.Range != nil, "within": claim.Within != 0,
		"value": claim.Value != nil, "factor": claim.Factor != "", "at": claim.At != nil}
	for _, r := range relations() {
		if r.name != claim.Relation {
			continue
		}
		for _, key := range []string{"right", "range", "within", "value", "factor", "at"} {
			if given[key] && !slices.Contains(r.takes, key) {
				c.fail(at("claims", i, key), "leave it out", "relation %s takes no %s", r.name, key)
			}
		}
	}
}

// selector refuses a factor that is nearly one that is known: a mistake in
// writing. Any other that is not known is a factor of another version.
func (c *checker) selector(where []string, s Selector) {
	for _, name := range s.names() {
		c.factor(append(slices.Clone(where), name), name)
	}
}

func (c *checker) factor(where []string, name string) {
	known := Factors()
	if slices.Contains(known, name) {
		return
	}
	if near := campaign.Suggest("factor", name, known); isNear(near) {
		c.fail(where, near, "unknown factor %q", name)
	}
}

func isNear(hint string) bool { return len(hint) > 8 && hint[:8] == "did you " }
