package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// What the published tools have in common. Each is run as the publications ran
// it, with what is needed on top to choose the port and to have its output in a
// form that a program can read.

const (
	// toolEdge is kept free at both ends of a tool's run when probes are read:
	// a tool starts and ends at moments of its own.
	toolEdge = 100 * time.Millisecond
	// toolPatience is what a tool may take beyond its own time: most have no
	// limit of their own for a path that is cut.
	toolPatience = 5 * time.Second
	// serverPatience is what its server may take beyond that, as its client
	// comes later.
	serverPatience = 20 * time.Second
)

// wholeSeconds is a length as tools take it: rounded up, at least one.
func wholeSeconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// timed says of a tool's program when it must be over, and where the probes are
// read: the tool measures for length, after lead. Its server lives longer, as
// its client comes later.
func timed(p Program, lead, length time.Duration) Program {
	p.Env = append(p.Env, "LC_ALL=C")
	p.Timeout = lead + length + toolPatience
	if p.Ready != "" {
		p.Timeout += serverPatience
	}
	p.WindowOffset, p.Window = lead+toolEdge, length-2*toolEdge
	return p
}

// target is the server's address and port for an argv. Where they are not known
// yet (a dry run) they are the placeholders that the agent fills in.
func target(server netip.AddrPort) (host, port string) {
	if !server.IsValid() {
		return "{address}", "{port}"
	}
	return server.Addr().String(), strconv.Itoa(int(server.Port()))
}

// anyAddress is what a server binds to where the measured address is not its own
// (Program.AnyAddress).
func anyAddress(c result.Cell) string {
	if c.Family == "ipv6" {
		return "::"
	}
	return "0.0.0.0"
}

// over checks how both ends' programs ended. said is what the tool itself gave
// as the reason, where it was found in its output.
func over(client, server Output, said string) error {
	clientErr := ended("client", client, cmp.Or(said, lastLine(client)))
	if clientErr == nil && said != "" {
		clientErr = fmt.Errorf("%s: %s", toolName("client", client), said)
	}
	return errors.Join(clientErr, ended("server", server, lastLine(Output{Stderr: server.Stderr})))
}

func ended(end string, o Output, said string) error {
	name := toolName(end, o)
	if said != "" {
		said = ": " + said
	}
	switch {
	case o.Killed != "":
		return fmt.Errorf("%s did not end in time (%s)%s", name, o.Killed, said)
	case o.ExitCode < 0 && o.OutOfMemory:
		return fmt.Errorf("%s was killed by the kernel: out of memory: raise the memory limit there, or free memory%s", name, said)
	case o.ExitCode < 0:
		return fmt.Errorf("%s was ended by a signal%s", name, said)
	case o.ExitCode > 0:
		return fmt.Errorf("%s ended with status %d%s", name, o.ExitCode, said)
	case o.Unreachable != "":
		return fmt.Errorf("%s ended well, but its server cannot be reached any more: %s", name, o.Unreachable)
	}
	return nil
}

// Ended says why a tool's end was none that it should have come to; "" where
// all is well.
func Ended(end string, o Output) string {
	if len(o.Argv) == 0 {
		return ""
	}
	if err := ended(end, o, lastLine(Output{Stderr: o.Stderr})); err != nil {
		return err.Error()
	}
	return ""
}

func toolName(end string, o Output) string {
	if len(o.Argv) == 0 {
		return "the " + end
	}
	return o.Argv[0] + " (" + end + ")"
}

// lastLine is the last that a program said, on stderr or else on stdout.
func lastLine(o Output) string {
	for _, text := range []string{o.Stderr, o.Stdout} {
		lines := strings.Split(strings.TrimSpace(plain(text)), "\n")
		if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
			return clip(last)
		}
	}
	return ""
}

// clip keeps a quoted line readable.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// plain takes ANSI colours out (ECMA-48: ESC [ parameters m).
func plain(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != ';' })
		if end < 0 || rest[end] != 'm' {
			b.WriteString("\x1b[")
			s = rest
			continue
		}
		s = rest[end+1:]
	}
}

// notUnderstood is the refusal of an output that this program cannot read.
func notUnderstood(tool, version, why string) error {
	if version == "" {
		version = "version unknown"
	}
	return fmt.Errorf("%s (%s): its output is not understood: %s", tool, version, why)
}

// whole refuses text whose last line is torn: half a number is a number too.
func whole(text string) error {
	if !strings.HasSuffix(text, "\n") {
		return errors.New("it is cut off")
	}
	return nil
}

// number reads a number as tools print it. What is no finite decimal number, or
// is negative, is an error: tools print -1 for what they do not know.
func number(s string) (float64, error) {
	if strings.Trim(s, "0123456789.") != "" || s == "" {
		return 0, fmt.Errorf("%q is no number", clip(s))
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is no number", clip(s))
	}
	return v, nil
}

// metrics collects values by the names of unit.Metrics.
type metrics map[string]float64

// put sets a value that the tool gave. A name that the records do not know is
// an error of this program, so it is refused here and not on disk.
func (m metrics) put(name string, v float64) error {
	if _, ok := unit.FindMetric(name); !ok {
		return fmt.Errorf("no metric is called %q", name)
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%s is not finite", name)
	}
	m[name] = v
	return nil
}

// versions are those of the tools at both ends, as they printed them.
func versions(client, server Output) map[string]string {
	v := map[string]string{}
	for _, o := range []Output{client, server} {
		if len(o.Argv) == 0 || o.ToolVersion == "" {
			continue
		}
		name := o.Argv[0]
		if have, ok := v[name]; ok && have != o.ToolVersion {
			name += " (server)"
		}
		v[name] = o.ToolVersion
	}
	return v
}

// rateWarning says that a rate asked for was not reached within 0.1 %.
func rateWarning(tool string, asked, achieved float64, per string) string {
	return fmt.Sprintf("%s was asked for %.6g %s and sent %.6g: the sender's CPU or the path is too slow for it; ask for less, or read this as flat out", tool, asked, per, achieved)
}

// rateMissed reports whether a rate asked for was missed by more than 0.1 %.
func rateMissed(asked, achieved float64) bool {
	return asked > 0 && math.Abs(achieved-asked) > rateTolerance*asked
}

// sameCPU is where published tools run in a lab: as native traffic does.
const sameCPU = result.CPUsSame
