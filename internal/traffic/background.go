//go:build linux

package traffic

// backgroundMessage is what one of them sends at once, every 13 ms.
const backgroundMessage = 16 << 10

// backgroundSender is a paced stream that nothing is counted of: its receiver
// does that.
type backgroundSender struct{ *tcpSender }

// newBackgroundSender makes the sender of connection index. Streams begin one
// after another, so that they do not all send at the same moment for ever.
func newBackgroundSender(r *run, fd, index int) backgroundSender {
	interval := float64(backgroundMessage*8) * 1e9 / BackgroundRate
	lag := interval * float64(index) / float64(r.cfg.Streams+r.cfg.BackgroundStreams)
	return backgroundSender{&tcpSender{run: r, fd: fd, buf: make([]byte, backgroundMessage), pace: pacer{interval: interval}, lag: int64(lag)}}
}

func (backgroundSender) report(*tally) {}

// backgroundReceiver counts for the background alone.
type backgroundReceiver struct{ *tcpReceiver }

func (s backgroundReceiver) report(t *tally) { count(&t.background, s.bytes) }
