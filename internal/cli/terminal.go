package cli

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

func colors() []string { return []string{colorAuto, colorAlways, colorNever} }

// resultWriter is where results go, with what --color asks for.
type resultWriter struct {
	w     io.Writer
	color string
}

func (s *resultWriter) Write(p []byte) (int, error) { return s.w.Write(p) }

// terminal describes what a stream can show.
type terminal struct {
	isTTY   bool
	width   int  // columns; 80 where it is not known
	color   bool // see isColored
	unicode bool
}

// isTerminal reports whether a person can type into f.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func terminalOf(w io.Writer) terminal {
	t := terminal{width: 80}
	utf8 := os.Getenv("LC_ALL") + os.Getenv("LC_CTYPE") + os.Getenv("LANG")
	t.unicode = strings.Contains(strings.ToLower(strings.ReplaceAll(utf8, "-", "")), "utf8")
	f, ok := screenOf(w).(*os.File)
	t.isTTY = ok && term.IsTerminal(int(f.Fd()))
	t.color = isColored(colorOf(w), t.isTTY, os.Getenv)
	if !t.isTTY {
		return t
	}
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns >= 40 {
		t.width = columns
	}
	return t
}

// isColored reports whether a stream is written in colour. --color always and never
// come before the environment; auto is a terminal that can show colours, unless
// NO_COLOR is set (no-color.org).
func isColored(mode string, isTTY bool, getenv func(string) string) bool {
	switch mode {
	case colorAlways:
		return true
	case colorNever:
		return false
	}
	return isTTY && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// colorOf is the value of --color for a stream.
func colorOf(w io.Writer) string {
	if s, ok := w.(*resultWriter); ok {
		return s.color
	}
	return colorAuto
}
