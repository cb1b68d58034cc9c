package hosts

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
)

// holdHost is a shell script that makes its caller the only one on a host, for as
// long as its input is open: whatever kills this program lets the host go. Its
// arguments are the lock's file and who wants it. The file goes with the lock; who
// opened one that somebody took away meanwhile holds nothing. A lock that the same
// one holds is of a connection that broke, which the host does not know yet.
const holdHost = `command -v flock >/dev/null || { echo "cannot: it has no flock, of util-linux"; exit; }
( : >>"$1" ) 2>/dev/null || { echo "cannot: $1 cannot be written there"; exit; }
exec 9>>"$1"
flock -n 9 || { [ "$(sed -n 1p "$1")" = "$2" ] && kill "$(sed -n 2p "$1")" && flock -w 5 9; } || { echo "busy $(sed -n 1p "$1")"; exit; }
[ "$(stat -Lc %i /proc/self/fd/9)" = "$(stat -c %i "$1" 2>/dev/null)" ] || { echo "busy somebody"; exit; }
printf '%s\n%s\n' "$2" $$ >"$1"
echo held
cat >/dev/null 9>&-
rm -f "$1"
`

// lockFile is of the roles' folder: two inventories that name the same folder of
// a host are after the same settings.
func (h Host) lockFile() string {
	sum := sha256.Sum256([]byte(h.Dir))
	return "/run/lock/cnibench-" + hex.EncodeToString(sum[:4])
}

// lock is a host's, for as long as the process lives.
type lock struct {
	process *exec.Process
	gone    chan struct{} // closed with the connection
}

// hold takes a host's lock.
func (h Host) hold(ctx context.Context, r *exec.Runner, who string) (*lock, error) {
	p, err := r.StartPiped(ctx, h.ssh("sh", "-c", holdHost, "sh", h.lockFile(), who))
	if err != nil {
		return nil, err
	}
	l, answer := &lock{p, make(chan struct{})}, make(chan string, 1)
	go func() {
		defer close(l.gone)
		out := bufio.NewReader(p.Stdout)
		line, _ := out.ReadString('\n') // without one, how the process ended tells why
		answer <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, out) // until the connection ends, however it does
	}()
	var said string
	select {
	case said = <-answer:
	case <-time.After(answerWithin):
		err = &HostError{Host: h.Name, Text: fmt.Sprintf("no answer within %v", answerWithin), Lost: true}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if said == "held" {
		return l, nil
	}
	if holder, busy := strings.CutPrefix(said, "busy "); busy {
		err = &HostError{Host: h.Name, Text: "is in use by " + holder, Cure: "wait for it; where that is gone and the host does not know yet: fuser -k " + h.lockFile() + " there", Taken: true}
	}
	if why, unable := strings.CutPrefix(said, "cannot: "); unable {
		err = &HostError{Host: h.Name, Text: "cannot be held for this run alone: " + why, Cure: "mend that, or use another host"}
	}
	if err != nil {
		_, _ = p.Kill(), p.Wait() // why it ended is known
		return nil, err
	}
	return nil, l.letGo()
}

// letGo ends what hold began.
func (l *lock) letGo() error {
	err := l.process.Stdin.Close()
	<-l.gone // what is read has been, before Wait closes it
	return errors.Join(err, l.process.Wait())
}

// broken tells that the connection is gone, and the lock with it.
func (l *lock) broken() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// occupy makes this command the only one on both hosts until Release. A host that
// does not answer is held by nobody here, and told of by what comes next.
func (b *Bed) occupy(ctx context.Context) error {
	if b.held != nil {
		return nil
	}
	machine, err := os.Hostname()
	if err != nil {
		return err
	}
	b.who = fmt.Sprintf("cnibench on %s, process %d, since %s", machine, os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	b.held = map[string]*lock{}
	var errs []error
	for _, e := range b.ends {
		l, err := e.host.hold(ctx, b.options.Runner, b.who)
		var busy *HostError
		switch {
		case err == nil:
			b.held[e.host.Name] = l
		case errors.As(err, &busy) || ctx.Err() != nil:
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		b.vacate()
		return err
	}
	return nil
}

// holdAgain takes the lock of a host whose connection broke. Somebody else may
// have it by now.
func (b *Bed) holdAgain(ctx context.Context, e *end) error {
	old := b.held[e.host.Name]
	if old != nil && !old.broken() {
		return nil
	}
	if old != nil {
		_ = old.letGo() // it broke, and what needs the host tells why
	}
	delete(b.held, e.host.Name)
	l, err := e.host.hold(ctx, b.options.Runner, b.who)
	var broke *exec.Error
	if errors.As(err, &broke) {
		err = unreachable(e.host.Name, string(broke.Stderr), err)
	}
	if err != nil {
		return err
	}
	b.held[e.host.Name] = l
	return nil
}

// vacate lets both hosts go.
func (b *Bed) vacate() {
	for _, e := range b.ends {
		if l := b.held[e.host.Name]; l != nil {
			// A connection that broke holds nothing, and is told of by what needs it.
			_ = l.letGo()
		}
	}
	b.held = nil
}
