//go:build linux

package traffic

// mostSwitches bounds how many changes of the server are noted: nothing is allocated while
// connections are made.
const mostSwitches = 4096

// ownMark is what a serving half begins its responses with.
func (r *run) ownMark() byte {
	if r.cfg.Mark != 0 && r.over.Load() {
		r.lastMarks.Add(1)
		return r.cfg.Mark | lastMark
	}
	return r.cfg.Mark
}

// released reports whether a serving half that was asked to finish may end: each stream of its
// client knows that it is through, or has made no connection for long.
func (r *run) released() bool {
	return r.cfg.Mark == 0 || r.lastMarks.Load() >= int64(r.cfg.Streams) || r.in.silent()
}

// marks is what a driving half noted of who answered it.
type marks struct {
	now      byte
	measured int64 // from the beginning of the window to the last answer
	switches []Switch
	switched func() // called for each of them; may be nil
}

func newMarks(cfg Config, switched func()) *marks {
	if cfg.Mark == 0 {
		return nil
	}
	return &marks{switches: make([]Switch, 0, mostSwitches), switched: switched}
}

// over notes who answered a connection that was established at a time, and reports whether it
// was the last one. in is how far into the window the answer came.
func (m *marks) over(mark byte, at, in int64) bool {
	if m == nil {
		return false
	}
	m.measured = in
	if who := mark &^ lastMark; who != m.now && len(m.switches) < cap(m.switches) {
		m.now = who
		m.switches = append(m.switches, Switch{At: at, Mark: who})
		if m.switched != nil {
			m.switched()
		}
	}
	return mark&lastMark != 0
}

func (m *marks) report(t *tally) {
	if m == nil {
		return
	}
	t.window = max(t.window, m.measured)
	if t.switches == nil { // those of one stream: each sees all
		t.switches = m.switches
	}
}
