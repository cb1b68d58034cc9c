package plain

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"two lines\n\tand a tab, ü": "two lines\n\tand a tab, ü",
		"\x1b[31mred\x1b[0m":        `\x1b[31mred\x1b[0m`,
		"\x1b]0;title\a":            `\x1b]0;title\x07`,
		"50 %\rdone\x7f\x00":        `50 %\x0ddone\x7f\x00`,
		"\u009b2J":                  `\u009b2J`,
		"\u202egnp.exe":             `\u202egnp.exe`,
		"\x9b2J\xff":                `\x9b2J\xff`,
		"\ufffd":                    "\ufffd",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestCleanReachesEveryString(t *testing.T) {
	type inner struct{ S string }
	type outer struct {
		P     *inner
		L     []inner
		M     map[string]map[string]string
		A     [1]string
		B     []byte
		N     *string
		T     time.Time
		Count int
	}
	esc := "\x1b"
	v := outer{P: &inner{esc}, L: []inner{{esc}}, M: map[string]map[string]string{esc: {esc: esc}}, A: [1]string{esc}, B: []byte(esc), T: time.Unix(1, 0), Count: 3}
	Clean(&v)
	want := outer{P: &inner{`\x1b`}, L: []inner{{`\x1b`}}, M: map[string]map[string]string{`\x1b`: {`\x1b`: `\x1b`}}, A: [1]string{`\x1b`}, B: []byte(esc), T: time.Unix(1, 0), Count: 3}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Error(diff)
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b[31m")
	f.Add("a\u202eb\xff")
	f.Fuzz(func(t *testing.T, s string) {
		defer fuzzed.Within(t)()
		got := Text(s)
		if !utf8.ValidString(got) || Text(got) != got {
			t.Errorf("%q becomes %q", s, got)
		}
		for _, r := range got {
			if shown(r) {
				t.Errorf("%q becomes %q", s, got)
			}
		}
	})
}
