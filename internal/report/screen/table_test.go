package screen

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report/page"
)

// A table that is wider than the screen is broken before columns that are joined to none,
// and a group that is itself too wide is broken inside.
func TestBreakAfter(t *testing.T) {
	tab := page.Table{Columns: []page.Column{{}, {}, {Joined: true}, {}, {Joined: true}, {Joined: true}}}
	widths := []int{10, 8, 8, 8, 8, 8} // 10 columns each with the gap
	for _, c := range []struct{ from, room, to, used int }{
		{1, 100, 6, 50}, {1, 49, 3, 20}, {1, 39, 3, 20}, {1, 30, 3, 20}, {1, 19, 2, 10}, {1, 5, 2, 10}, {3, 30, 6, 30}, {3, 29, 5, 20},
	} {
		if to, used := breakAfter(tab, widths, c.from, c.room); to != c.to || used != c.used {
			t.Errorf("from %d in %d columns: to %d with %d, want %d with %d", c.from, c.room, to, used, c.to, c.used)
		}
	}
}

// A title that takes several lines is bold in all of them.
func TestTitle(t *testing.T) {
	got := New(Options{Width: 80, Color: true}).Title(strings.Repeat("word ", 20))
	if len(got) != 2 {
		t.Fatalf("%d lines: %q", len(got), got)
	}
	for _, l := range got {
		if !strings.HasPrefix(l, "\x1b[1m") || !strings.HasSuffix(l, "\x1b[0m") {
			t.Errorf("not bold: %q", l)
		}
	}
}
