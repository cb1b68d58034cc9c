package hosts

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
)

// holdHost is a shell script that makes its caller the only one on a host, for as
// long as its input is open: whatever kills this program lets the host go. Its
// arguments are the lock's file and who wants it. The file goes with the lock; who
// opened one that somebody took away meanwhile holds nothing.
const holdHost = `command -v flock >/dev/null || { echo "cannot: it has no flock, of util-linux"; exit; }
( : >>"$1" ) 2>/dev/null || { echo "cannot: $1 cannot be written there"; exit; }
exec 9>>"$1"
flock -n 9 || { echo "busy $(cat "$1")"; exit; }
[ "$(stat -Lc %i /proc/self/fd/9)" = "$(stat -c %i "$1" 2>/dev/null)" ] || { echo "busy somebody"; exit; }
echo "$2" >"$1"
echo held
cat >/dev/null
rm -f "$1"
`

// lockFile is of the roles' folder: two inventories that name the same folder of
// a host are after the same settings.
func (h Host) lockFile() string {
	sum := sha256.Sum256([]byte(h.Dir))
	return "/run/lock/cnibench-" + hex.EncodeToString(sum[:4])
}

// hold takes a host's lock; the process that is given back keeps it.
func (h Host) hold(ctx context.Context, r *exec.Runner, who string) (*exec.Process, error) {
	p, err := r.StartPiped(ctx, h.ssh("sh", "-c", holdHost, "sh", h.lockFile(), who))
	if err != nil {
		return nil, err
	}
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(p.Stdout).ReadString('\n') // without one, how the process ended tells why
		answer <- strings.TrimSpace(line)
	}()
	var said string
	select {
	case said = <-answer:
	case <-time.After(answerWithin):
		err = &HostError{Host: h.Name, Text: fmt.Sprintf("no answer within %v", answerWithin)}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if said == "held" {
		return p, nil
	}
	if holder, busy := strings.CutPrefix(said, "busy "); busy {
		err = &HostError{h.Name, "is in use by " + holder, "wait for it; where that is gone and the host does not know yet: fuser -k " + h.lockFile() + " there"}
	}
	if why, unable := strings.CutPrefix(said, "cannot: "); unable {
		err = &HostError{h.Name, "cannot be held for this run alone: " + why, "mend that, or use another host"}
	}
	if err != nil {
		_, _ = p.Kill(), p.Wait() // why it ended is known
		return nil, err
	}
	return nil, letGo(p)
}

// letGo ends what hold began.
func letGo(p *exec.Process) error { return errors.Join(p.Stdin.Close(), p.Wait()) }

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
	who := fmt.Sprintf("cnibench on %s, process %d, since %s", machine, os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	b.held = map[string]*exec.Process{}
	var errs []error
	for _, e := range b.ends {
		p, err := e.host.hold(ctx, b.options.Runner, who)
		var busy *HostError
		switch {
		case err == nil:
			b.held[e.host.Name] = p
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

// vacate lets both hosts go.
func (b *Bed) vacate() {
	for _, e := range b.ends {
		if p := b.held[e.host.Name]; p != nil {
			// A connection that broke holds nothing, and is told of by what needs it.
			_ = letGo(p)
		}
	}
	b.held = nil
}
