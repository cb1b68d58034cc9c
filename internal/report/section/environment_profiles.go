package section

import (
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
)

// profileFacts is what became of each setting that a profile asks for, with
// the places where it came out so.
func profileFacts(d *report.Document) *page.Table {
	t := &page.Table{Caption: "Settings that profiles ask for", Columns: []page.Column{{Head: "profile"}, {Head: "setting"}, {Head: "asked"}, {Head: "is"}, {Head: "where", Wide: true}, {Head: "why not", Wide: true}}}
	type line struct{ profile, name, asked, is, why string }
	where := map[line][]string{}
	var order []line
	add := func(profile, place string, settings []result.Setting) {
		for _, s := range settings {
			l := line{profile, s.Name, s.Asked, s.Value, s.Reason}
			if where[l] == nil {
				order = append(order, l)
			}
			where[l] = append(where[l], place)
		}
	}
	for _, name := range report.SortedKeys(d.Environment.Places) {
		p := d.Environment.Places[name]
		add(p.Profile, name, p.Settings)
	}
	for _, name := range report.SortedKeys(d.Environment.Profiles) {
		profile, place, on := strings.Cut(name, " on ")
		if !on {
			place = "the whole machine"
		}
		add(profile, place, d.Environment.Profiles[name])
	}
	for _, l := range order {
		is := l.is
		if is == "" {
			is = "cannot be read"
		}
		t.Rows = append(t.Rows, []page.Field{page.Text(l.profile), page.Text(l.name), page.Text(l.asked), page.Text(is), page.Text(report.And(where[l])), page.Text(l.why)})
	}
	return t
}
