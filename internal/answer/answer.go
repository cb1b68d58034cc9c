// Package answer checks what hosts, pods and clusters answer before anything else uses
// it: an answer may come from a machine that somebody else has taken over.
package answer

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The longest answers that are taken, in bytes, and the most entries of a list.
const (
	MaxLine    = 256
	MaxValue   = 4096
	MaxEntries = 4096
)

// pattern is a regular expression that is compiled where it is used: few answers are
// checked, and none of them while anything is measured.
func pattern(s, expression string) bool { return regexp.MustCompile(expression).MatchString(s) }

// Device reports whether s can be a network device's name: at most 15 bytes
// (IFNAMSIZ), of those that people and the kernel give names with. It cannot be read as an
// option, a path, a template or several words.
func Device(s string) bool {
	return pattern(s, `^[A-Za-z0-9_][A-Za-z0-9_.@:+-]{0,14}$`)
}

// Kernel reports whether s can be a kernel's release, as uname(2) gives it.
func Kernel(s string) bool { return pattern(s, `^[0-9][A-Za-z0-9._+~-]{0,63}$`) }

// Name reports whether s can be the name of a setting: "net.ipv4.tcp_sack", "offload
// eth0 gro", "file /sys/block/sda/queue/scheduler".
func Name(s string) bool { return pattern(s, `^[A-Za-z0-9_][A-Za-z0-9_.:@/+ -]{0,255}$`) }

// Line is s as one line of at most MaxLine bytes: what is not printable (escape
// sequences of a terminal, line ends, bytes that are no UTF-8) becomes "?".
func Line(s string) string { return clean(s, MaxLine, false) }

// Text is s with at most MaxValue bytes, in which only line ends, tabs and what is
// printable is left as it is.
func Text(s string) string { return clean(s, MaxValue, true) }

func clean(s string, limit int, lines bool) string {
	if len(s) > limit {
		s = s[:limit]
		for len(s) > 0 && !utf8.ValidString(s[len(s)-min(len(s), utf8.UTFMax):]) && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		s += " …"
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) && !(lines && (r == '\n' || r == '\t')) {
			return '?'
		}
		return r
	}, s)
}

// Values checks settings by name, and returns them with values that are safe to print.
func Values(values map[string]string) (map[string]string, error) {
	if len(values) > MaxEntries {
		return nil, fmt.Errorf("it answers with %d settings, more than %d", len(values), MaxEntries)
	}
	if values == nil {
		return nil, nil
	}
	out := map[string]string{}
	for name, v := range values {
		if !Name(name) {
			return nil, fmt.Errorf("it answers with a setting of the name %q, which no setting has", Line(name))
		}
		out[name] = Line(v)
	}
	return out, nil
}

// MTU reports whether n can be a device's MTU in bytes.
func MTU(n int) bool { return n >= 0 && n <= 1<<24 }

// Address reports whether s is an IP address.
func Address(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}
