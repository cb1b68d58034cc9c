package section

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/rank"
)

// factorName is a factor as a heading.
func factorName(name string) string {
	f, _ := result.FindFactor(name)
	return cmp.Or(f.Label, name)
}

// factorsName is several levels of a factor, in words.
func factorsName(name string) string {
	f, _ := result.FindFactor(name)
	return cmp.Or(f.Plural, factorName(name)+"s")
}

// levelName is a level in words.
func levelName(factor, level string) string {
	f, _ := result.FindFactor(factor)
	return cmp.Or(level, f.Absent, "none")
}

// FactorTables compare the levels of what a campaign varies with their
// reference, one table for each factor.
func FactorTables(d *report.Document) []*page.Table {
	var out []*page.Table
	for _, name := range factorNames(d) {
		of := slices.DeleteFunc(slices.Clone(d.Analysis.Factors), func(r rank.FactorRanking) bool { return r.Factor != name })
		out = append(out, factorTable(d, name, of))
	}
	return out
}

// factorNames are the factors that vary, in the order of the analysis.
func factorNames(d *report.Document) []string {
	var out []string
	for _, r := range d.Analysis.Factors {
		if !slices.Contains(out, r.Factor) {
			out = append(out, r.Factor)
		}
	}
	return out
}

// factorTable is levels × goals; ranks are those of the first goal.
func factorTable(d *report.Document, name string, of []rank.FactorRanking) *page.Table {
	t := &page.Table{Columns: []page.Column{{Head: factorName(name)}}}
	var settings []rank.Setting
	var levels []string
	for _, r := range of {
		settings = append(settings, r.Settings...)
		t.Columns = append(t.Columns, page.Column{Head: goalHead(r.Goal, r.Settings), Number: true})
		for _, l := range r.Levels {
			if !slices.Contains(levels, l.Level) {
				levels = append(levels, l.Level)
			}
		}
	}
	t.Columns = append(t.Columns, page.Column{Head: rankHead})
	t.Caption = report.Capital(factorName(name)) + " compared with " + levelName(name, of[0].Levels[0].Level) + " (" + d.Name(of[0].Network) + ", " + scopeWords(settings) + ")"
	for _, level := range levels {
		row := []page.Field{page.Text(levelName(name, level))}
		ranked := "not ranked"
		for i, r := range of {
			at := slices.IndexFunc(r.Levels, func(l rank.Level) bool { return l.Level == level })
			if at < 0 {
				row = append(row, page.Text("not measured"))
				continue
			}
			row = append(row, levelField(r, at))
			if i == 0 {
				ranked = ranks(r.Levels[at].Rank, r.Levels[at].RankTo)
			}
		}
		t.Rows = append(t.Rows, append(row, page.Text(ranked)))
	}
	if len(of) > 1 {
		t.Notes = append(t.Notes, "Ranked by "+goalHead(of[0].Goal, of[0].Settings)+".")
	}
	return t
}

func levelField(r rank.FactorRanking, at int) page.Field {
	switch e := r.Levels[at].AgainstReference; {
	case at == 0:
		return page.Text("reference")
	case e == nil:
		return page.Text("no block in common")
	default:
		return changeField(r.Goal, *e)
	}
}
