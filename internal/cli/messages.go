package cli

import "io"

// messages is where a command writes everything that is not its result. -q
// silences it, -v asks for more; errors do not go through it.
type messages struct {
	w              io.Writer
	quiet, verbose bool
}

func (m *messages) Write(p []byte) (int, error) {
	if m.quiet {
		return len(p), nil
	}
	return m.w.Write(p)
}

// screenOf is the stream behind w, which may be a terminal; nil where -q
// silences it.
func screenOf(w io.Writer) io.Writer {
	switch s := w.(type) {
	case *resultWriter:
		return s.w
	case *messages:
		if s.quiet {
			return nil
		}
		return s.w
	}
	return w
}

// isVerbose reports whether -v was given.
func isVerbose(w io.Writer) bool {
	m, ok := w.(*messages)
	return ok && m.verbose
}
