package answer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

func TestNames(t *testing.T) {
	for what, c := range map[string]struct {
		is        func(string) bool
		good, bad []string
	}{
		"device": {Device, []string{"eth0", "enp3s0f1", "eth0.100", "br-lan", "eth0@if3", "eth0:1", "_x"},
			[]string{"", "-e", ".", "..", "a b", "{{ x }}", "{% x %}", "eth0\n", "a/b", "$(id)", "sixteen-bytes-xx", "ä", "eth0;id"}},
		"kernel": {Kernel, []string{"6.1.0-18-amd64", "5.15.0+", "6.8.0-1008-azure~x_1"},
			[]string{"", "Linux", "6.1 {{ x }}", "6\x1b[2J", "6.1\n", strings.Repeat("6", 65)}},
		"setting": {Name, []string{"net.ipv4.tcp_sack", "offload eth0 gro", "file /sys/block/sda/queue/scheduler", "tuned"},
			[]string{"", "a\nb", "{{ a }}", "-a", "a\x1b", strings.Repeat("a", 257)}},
		"address": {Address, []string{"10.0.0.1", "fe80::1"}, []string{"", "10.0.0", "a", "10.0.0.1\n"}},
	} {
		for _, s := range c.good {
			if !c.is(s) {
				t.Errorf("%s: %q is refused", what, s)
			}
		}
		for _, s := range c.bad {
			if c.is(s) {
				t.Errorf("%s: %q is taken", what, s)
			}
		}
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"Debian GNU/Linux 12": "Debian GNU/Linux 12", "a\x1b[2Jb": "a?[2Jb", "a\nb\r\xff": "a?b??", "é": "é",
	} {
		if got := Line(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := Text("a\n\tb\x07"); got != "a\n\tb?" {
		t.Errorf("text: %q", got)
	}
	if got := Line(strings.Repeat("é", 1000)); len(got) > MaxLine+10 || !utf8.ValidString(got) || strings.Contains(got, "?") {
		t.Errorf("long: %q", got)
	}
}

func TestValues(t *testing.T) {
	got, err := Values(map[string]string{"net.ipv4.tcp_sack": "1\x1b"})
	if err != nil || got["net.ipv4.tcp_sack"] != "1?" {
		t.Errorf("%v, %v", got, err)
	}
	for _, name := range []string{"{{ lookup('pipe', 'id') }}", "", "a\nb"} {
		if _, err := Values(map[string]string{name: "1"}); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

// FuzzLine: whatever is answered, what is printed of it is one line of bounded length
// without control characters.
func FuzzLine(f *testing.F) {
	f.Add("a\x1b]0;title\x07")
	f.Add(strings.Repeat("\xc3", 300))
	f.Fuzz(func(t *testing.T, s string) {
		defer fuzzed.Within(t)()
		got := Line(s)
		if !utf8.ValidString(got) || len(got) > MaxLine+4 || strings.ContainsAny(got, "\x1b\n\r\x07\u009b") {
			t.Errorf("%q became %q", s, got)
		}
	})
}
