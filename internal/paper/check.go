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
				c.fail(append(slices.Clone(where), key), "null stands for a value that is not published", "expected %d values, one a column, found %d", len(t.Columns), n)
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
		c.selector(at("claims", i, "except"), claim.Except)
		c.thresholds(i, claim)
		if claim.Factor != "" {
			c.factor(at("claims", i, "factor"), claim.Factor)
		}
		c.superfluous(i, claim)
		if claim.Testbed != "" && claim.NotYet != "" {
			c.fail(at("claims", i, "testbed"), "leave one of them out", "testbed says where a claim is measured, and not_yet that it is not")
		}
	}
	return c.errs
}

// widest is how many times the lower end of a range of ratios the upper one may be:
// beyond that one of them says nothing.
const widest = 4

// thresholds refuses those that decide nothing, and those whose words are not named.
func (c *checker) thresholds(i int, claim Claim) {
	if claim.Range != nil {
		c.ends(i, claim)
	}
	if claim.UpTo > 0 && claim.By >= claim.UpTo {
		c.fail(at("claims", i, "by"), "by is the least, up_to the greatest difference", "by %g is not below up_to %g", claim.By, claim.UpTo)
	}
	given := claim.Range != nil || claim.Within > 0 || claim.By > 0 || claim.UpTo > 0
	if given && claim.CountsAs == "" {
		c.fail(at("claims", i), "name the published words or numbers that the thresholds stand for", "missing key %q", "counts_as")
	}
	r, _ := findRelation(claim.Relation)
	if claim.Measure == differenceMeasure && (!slices.Contains([]string{"greater", "less", "better", "worse", "difference_within", "grows_more", "grows_less"}, r.name) || claim.By > 0 || claim.UpTo > 0) {
		c.fail(at("claims", i, "measure"), "difference is for greater, less, better, worse, grows_more and grows_less without by and up_to; difference_within has a range", "relation %s takes no measure difference here", claim.Relation)
	}
}

// ends refuses a range that has none, or one that says nothing.
func (c *checker) ends(i int, claim Claim) {
	where := at("claims", i, "range")
	if len(claim.Range) != 2 || claim.Range[0] == nil && claim.Range[1] == nil {
		c.fail(where, "write [least, greatest]; null leaves one of them open", "expected two numbers, at least one of them given")
		return
	}
	low, high := claim.Range[0], claim.Range[1]
	if low == nil || high == nil {
		return
	}
	if *high < *low {
		c.fail(where, "write the lower first", "%g is below %g", *high, *low)
	}
	if claim.Relation == "ratio_within" && (*low <= 0 || *high > widest**low) {
		c.fail(where, "null leaves the end open that the publication does not speak of", "an end says nothing: from %g to %g is more than %d times", *low, *high, widest)
	}
}

// superfluous refuses keys that the relation does not look at.
func (c *checker) superfluous(i int, claim Claim) {
	r, ok := findRelation(claim.Relation)
	if !ok {
		return
	}
	for _, k := range []struct {
		key   string
		given bool
	}{{"right", claim.Right != nil}, {"range", claim.Range != nil}, {"within", claim.Within != 0}, {"by", claim.By != 0},
		{"up_to", claim.UpTo != 0}, {"factor", claim.Factor != ""}, {"at", claim.At != nil}} {
		if k.given && !slices.Contains(r.takes, k.key) && !slices.Contains(r.may, k.key) {
			c.fail(at("claims", i, k.key), "leave it out", "relation %s takes no %s", r.name, k.key)
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
