package baremetal

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
)

// holdHost is a shell script that makes its caller the only one on a host, for as
// long as its input is open: whatever kills this program lets the host go. Its
// arguments are the lock's file and who wants it. The file goes with the lock; who
// opened one that somebody took away meanwhile holds nothing. It is in a folder that only
// its user may enter: in a folder for everybody, anybody could hold the lock, lead the
// file elsewhere or name a process to be killed. A lock that the same one holds is of a
// connection that broke, which the host does not know yet: the process is ended if it is
// seen to hold this very lock. Of one that nobody comes back for, the host would never
// know: without a line for some seconds (the third argument) it lets go on its own.
const holdHost = `command -v flock >/dev/null || { echo "cannot: it has no flock, of util-linux"; exit; }
d=$(dirname "$1")
umask 077
for try in 1 2 3 4 5; do
	mkdir "$d" 2>/dev/null
	[ "$(stat -c '%F %u %a' "$d" 2>/dev/null)" = "directory $(id -u) 700" ] || continue
	[ ! -L "$1" ] && ( : >>"$1" ) 2>/dev/null && exec 9>>"$1" && break
done
[ "$(stat -c '%F %u %a' "$d" 2>/dev/null)" = "directory $(id -u) 700" ] || { echo "cannot: $d is not a folder that only its user may enter (remove it)"; exit; }
[ -e /proc/self/fd/9 ] || { echo "cannot: $1 cannot be written there"; exit; }
holds() {
	this=$(stat -Lc %d:%i /proc/self/fd/9)
	for f in "/proc/$1/fd/"*; do
		[ "$(stat -Lc %d:%i "$f" 2>/dev/null)" = "$this" ] && return
	done
	return 1
}
mine() {
	old=$(sed -n 2p "$1")
	[ "$(sed -n 1p "$1")" = "$2" ] && [ -n "$old" ] && holds "$old" && kill "$old"
}
flock -n 9 || { mine "$1" "$2" && flock -w 5 9; } || { echo "busy $(sed -n 1p "$1")"; exit; }
[ "$(stat -Lc %i /proc/self/fd/9)" = "$(stat -c %i "$1" 2>/dev/null)" ] || { echo "busy somebody"; exit; }
printf '%s\n%s\n' "$2" $$ >"$1"
echo held
while timeout "$3" sh -c 'read -r _' 9>&-; do :; done
rm -f "$1"
rmdir "$d" 2>/dev/null
exit 0
`

// A lock is of one that says so every beatEvery; after letGoAfter without an answer
// the host lets it go, which is later than ssh gives up.
const (
	beatEvery  = 5 * time.Second
	letGoAfter = 25 * time.Second
)

// closeWait is how long a host may take to let go.
const closeWait = 5 * time.Second

// lockFile is of the roles' folder: two inventories that name the same folder of
// a host are after the same settings.
func (h Host) lockFile() string {
	sum := sha256.Sum256([]byte(h.Dir))
	return "/run/cnibench-hosts/" + hex.EncodeToString(sum[:4])
}

// lock is a host's, for as long as the process lives.
type lock struct {
	process *exec.Process
	gone    chan struct{} // closed with the connection
}

// hold takes a host's lock.
func (h Host) hold(ctx context.Context, r *exec.Runner, who string) (*lock, error) {
	seconds := strconv.Itoa(int(letGoAfter.Seconds()))
	p, err := r.StartPiped(ctx, h.ssh("sh", "-c", holdHost, "sh", h.lockFile(), who, seconds))
	if err != nil {
		return nil, err
	}
	l, answer := &lock{p, make(chan struct{})}, make(chan string, 1)
	go func() {
		defer close(l.gone)
		out := bufio.NewReader(p.Stdout)
		line, _ := out.ReadString('\n') // without one, the way the process ended is the reason
		answer <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, out) // until the connection ends, however it does
	}()
	bounded, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var said string
	select {
	case said = <-answer:
	case <-bounded.Done():
		err = h.silent(bounded)
	}
	if said == "held" {
		go l.beat()
		return l, nil
	}
	if holder, busy := strings.CutPrefix(said, "busy "); busy {
		err = &HostError{Host: h.Name, Text: "is in use by " + holder, Cure: fmt.Sprintf("wait for it; of one that is gone, the host knows after %v", letGoAfter), Taken: true}
	}
	if why, unable := strings.CutPrefix(said, "cannot: "); unable {
		err = &HostError{Host: h.Name, Text: "cannot be held for this run alone: " + why, Cure: "fix that, or use another host"}
	}
	if err != nil {
		_, _ = p.Kill(), p.Wait() // why it ended is known
		return nil, err
	}
	if err := l.letGo(); err != nil {
		return nil, h.explain(err)
	}
	return nil, &HostError{Host: h.Name, Text: "its lock gave no answer", Cure: "is " + h.lockFile() + " a file there that can be locked?"}
}

// beat shows the host again and again that the holder is alive.
func (l *lock) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.gone:
			return
		case <-tick.C:
			if _, err := io.WriteString(l.process.Stdin, "\n"); err != nil {
				return // let go, or the connection broke, which whoever needs it finds
			}
		}
	}
}

// letGo ends what hold began. A host that does not answer releases the lock on its own.
func (l *lock) letGo() error {
	err := l.process.Stdin.Close()
	kill := time.AfterFunc(closeWait, func() { _ = l.process.Kill() }) // it may have ended just now
	defer kill.Stop()
	<-l.gone // what is read has been, before Wait closes it
	return errors.Join(err, l.process.Wait())
}

// broken reports that the connection is gone, and the lock with it.
func (l *lock) broken() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// occupy makes this command the only one on the ends of those names until Release,
// and gives the names of those that answer, with an error for each other. Where
// another command has one, or one cannot be held, it holds none and names none.
func (b *Testbed) occupy(ctx context.Context, names []string) (held []string, err error) {
	if b.held == nil {
		if err := b.name(); err != nil {
			return nil, err
		}
		b.held = map[string]*lock{}
	}
	var errs []error
	for _, e := range b.ends {
		if !slices.Contains(names, e.host.Name) {
			continue
		}
		if b.held[e.host.Name] == nil {
			l, err := e.host.hold(ctx, b.options.Runner, b.who)
			if err != nil && !isLost(err) {
				b.vacate()
				return nil, err
			}
			if errs = append(errs, err); err != nil {
				continue
			}
			b.held[e.host.Name] = l
		}
		held = append(held, e.host.Name)
	}
	return held, errors.Join(errs...)
}

// name makes what the locks say of this command.
func (b *Testbed) name() error {
	machine, err := os.Hostname()
	b.who = fmt.Sprintf("cnibench on %s, process %d, since %s", machine, os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	return err
}

// holdAgain takes the lock of a host whose connection broke. Somebody else may
// have it by now, or have had it: what is in force there is not known any more.
func (b *Testbed) holdAgain(ctx context.Context, e *end) error {
	old := b.held[e.host.Name]
	if old != nil && !old.broken() {
		return nil
	}
	if old != nil {
		_ = old.letGo() // it broke; whatever needs the host reports why
	}
	b.tuned = tuning{}
	delete(b.held, e.host.Name)
	l, err := e.host.hold(ctx, b.options.Runner, b.who)
	if err != nil {
		return err
	}
	b.held[e.host.Name] = l
	return nil
}

// vacate lets both hosts go.
func (b *Testbed) vacate() {
	for _, e := range b.ends {
		if l := b.held[e.host.Name]; l != nil {
			// A connection that broke holds nothing, and whatever needs it reports it.
			_ = l.letGo()
		}
	}
	b.held = nil
}
