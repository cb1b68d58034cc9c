package cli

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// terminal tells what a stream can show.
type terminal struct {
	isTTY   bool
	width   int  // columns; 80 where it is not known
	color   bool // never when NO_COLOR is set (no-color.org)
	unicode bool
}

// isTerminal reports whether a person can type into f.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func terminalOf(w io.Writer) terminal {
	t := terminal{width: 80}
	utf8 := os.Getenv("LC_ALL") + os.Getenv("LC_CTYPE") + os.Getenv("LANG")
	t.unicode = strings.Contains(strings.ToLower(strings.ReplaceAll(utf8, "-", "")), "utf8")
	f, ok := screenOf(w).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return t
	}
	t.isTTY = true
	t.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns >= 40 {
		t.width = columns
	}
	return t
}
