package workload

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// startWithin is when all ranks of an MPI job must be up: less than the 15 s in which a
// sample whose MPI hangs at its start must fail.
const startWithin = 12 * time.Second

// usualStart is what it takes to start and end an MPI of a few ranks.
const usualStart = time.Second

// Launch is what a launcher of ranks prints. Its launch commands start what runs the
// ranks at the other places; the controller runs them there.
type Launch struct {
	// Prefix is what lines with launch commands begin with, on stdout, and Commands how
	// many there are.
	Prefix   string `json:"prefix"`
	Commands int    `json:"commands"`
	// Begun is a text that is printed once all ranks are up.
	Begun string `json:"begun"`
	// Within is when Begun must have been printed; the launcher is ended otherwise.
	Within time.Duration `json:"within_nanoseconds"`
}

// Device is what a device carried.
type Device struct {
	Name          string  `json:"name"`
	SentBytes     float64 `json:"sent_bytes"`
	ReceivedBytes float64 `json:"received_bytes"`
}

// MPIHost is one place of an MPI job, with the ranks that run there, in their order.
type MPIHost struct {
	Address netip.Addr
	Ranks   []int
	// LocalRanks are their numbers among all ranks on their machine.
	LocalRanks []int
}

// MPIDaemon is a program that runs the ranks of one place, an index of the hosts.
type MPIDaemon struct {
	Host    int
	Program Program
}

// MPI is a workload whose ranks are processes of a real MPI, which its own launcher starts.
type MPI struct {
	spec Spec
	// rank is what each rank runs, and what the program prints once all are up.
	rank func(p Params) (argv []string, begun string, err error)
	// usual is how long the program takes on a machine that does nothing else, and longest
	// how long it may take.
	usual, longest func(p Params) time.Duration
	// parse reads what the program printed.
	parse func(p Params, launcher Output) (Measurement, error)
	// sent is how many bytes each rank sent to each other one by the program's own output;
	// nil where it is unknown.
	sent func(p Params, launcher Output) (mpiBytes, error)
	// onStderr reports that the program prints on stderr, so that an MPI's own messages are
	// to go to stdout.
	onStderr bool
	// least is how many bytes the operations of the program send from each place at least,
	// for an MPI that does not count; nil where sent is known.
	least func(p Params, hosts []MPIHost, launcher Output) ([]float64, error)
}

// implementation is one MPI.
type implementation struct {
	// launch is the launcher's program, but for what each rank runs.
	launch func(hosts []MPIHost) Program
	// prefix is what its launch commands begin with; local reports that there is one for the
	// launcher's own place too.
	prefix string
	local  bool
	// daemon reads a launch command.
	daemon func(hosts []MPIHost, words []string) (host int, argv []string, err error)
	// sent reads what the implementation itself counted; nil where it does not.
	sent func(launcher Output) (mpiBytes, error)
	// carries reads what the implementation says that it sends by, where it chooses that
	// itself; nil where it is pinned.
	carries func(launcher Output) (carriers, error)
}

// implementationOf is that of a test: tests are named after them, or end with the name
// where they are not for Open MPI.
func (w MPI) implementationOf(test string) (implementation, error) {
	switch {
	case test != "" && !slices.Contains(w.spec.Tests, test):
		return implementation{}, fmt.Errorf("%s has no test %q", w.spec.Name, test)
	case isMPICH(test):
		return mpich(), nil
	case isUCX(test):
		return openMPIByUCX(w.onStderr), nil
	}
	return openMPI(), nil
}

// Spec describes the workload.
func (w MPI) Spec() Spec { return w.spec }

// Takes is how long a sample takes, for estimates: its program ends on its own, whatever a
// campaign's sampling asks for.
func (w MPI) Takes(p Params) time.Duration { return usualStart + w.usual(p) }

// Serve is an error: there are ranks.
func (MPI) Serve(Params) (Program, error) { return Program{}, errManyEnds }

// Drive is an error: there are ranks.
func (MPI) Drive(Params, netip.AddrPort) (Program, error) { return Program{}, errManyEnds }

// Parse is an error: ParseJob reads what the launcher printed.
func (MPI) Parse(Params, Output, Output) (Measurement, error) { return Measurement{}, errManyEnds }

// mpiEnv is the environment of launchers and daemons. A user's own settings of an MPI
// (~/.openmpi) do not count, and a threaded BLAS does not take the CPUs of other ranks. The
// root of a user namespace that has nobody else runs Open MPI as itself.
func mpiEnv() []string {
	return []string{
		"LC_ALL=C", "TMPDIR={dir}", "HOME={dir}", "SHELL=/bin/bash", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
	}
}

// Launch is the launcher, for the place of rank 0.
func (w MPI) Launch(p Params, hosts []MPIHost) (Program, error) {
	if err := w.spec.CheckRanks(p.Cell.Test, "", p.Cell.Ranks, p.Cell.MessageBytes); err != nil {
		return Program{}, err
	}
	mpi, err := w.implementationOf(p.Cell.Test)
	if err != nil {
		return Program{}, err
	}
	argv, begun, err := w.rank(p)
	if err != nil {
		return Program{}, err
	}
	launch := mpi.launch(hosts)
	launch.Argv = append(launch.Argv, argv...)
	launch.Env, launch.OwnPIDs, launch.Timeout = mpiEnv(), true, startWithin+w.longest(p)
	launch.Placement, launch.LocalRanks, launch.MeasuredAddress = p.Cell.CPUs, hosts[0].LocalRanks, hosts[0].Address.String()
	commands := len(hosts) - 1
	if mpi.local {
		commands++
	}
	launch.Launch = &Launch{Prefix: mpi.prefix, Commands: commands, Begun: begun, Within: startWithin}
	return launch, nil
}

// Daemons are the programs that the launch commands start, each for its place.
func (w MPI) Daemons(p Params, hosts []MPIHost, commands []string) ([]MPIDaemon, error) {
	mpi, err := w.implementationOf(p.Cell.Test)
	if err != nil {
		return nil, err
	}
	var daemons []MPIDaemon
	taken := map[int]bool{}
	for _, command := range commands {
		words, err := shellWords(command)
		if err != nil {
			return nil, fmt.Errorf("launch command %q: %w", clip(command), err)
		}
		host, argv, err := mpi.daemon(hosts, words)
		switch {
		case err != nil:
			return nil, fmt.Errorf("launch command %q: %w", clip(command), err)
		case taken[host]:
			return nil, fmt.Errorf("launch command %q: a second one for this place", clip(command))
		}
		taken[host] = true
		daemons = append(daemons, MPIDaemon{host, Program{
			Argv: argv, Env: mpiEnv(), OwnPIDs: true, Timeout: 2*startWithin + w.longest(p), Placement: p.Cell.CPUs,
			LocalRanks: hosts[host].LocalRanks, MeasuredAddress: hosts[host].Address.String(),
		}})
	}
	return daemons, nil
}

// shellWords splits a command as a POSIX shell does. Nothing is expanded.
func shellWords(command string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote, escaped := false, byte(0), false
	for _, c := range []byte(command) { // not runes: a byte that is no UTF-8 stays as it is
		switch {
		case escaped:
			if quote == '"' && strings.IndexByte("\"\\$`", c) < 0 {
				word.WriteByte('\\')
			}
			word.WriteByte(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				word.WriteByte(c)
			}
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == ' ' || c == '\t':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// programFrom gives the words from a program's name on, whatever a shell would do before.
// No other program is ever started by a launch command.
func programFrom(words []string, name string) ([]string, error) {
	at := slices.IndexFunc(words, func(w string) bool { return path.Base(w) == name })
	if at < 0 {
		return nil, fmt.Errorf("it does not start %s", name)
	}
	argv := slices.Clone(words[at:])
	argv[0] = name
	if argv[len(argv)-1] == ")" { // of a subshell
		argv = argv[:len(argv)-1]
	}
	return argv, nil
}

// ParseJob reads what the launcher printed, and compares what MPI sent with what the
// devices carried. outputs are those of the hosts; the first is the launcher's.
func (w MPI) ParseJob(p Params, hosts []MPIHost, outputs []Output) (Measurement, error) {
	if len(outputs) != len(hosts) || len(hosts) == 0 {
		return Measurement{}, fmt.Errorf("%d of %d places gave an output", len(outputs), len(hosts))
	}
	launcher := outputs[0]
	if err := jobEnded(hosts, outputs); err != nil {
		return Measurement{}, err
	}
	m, err := w.parse(p, launcher)
	if err != nil {
		return Measurement{}, notUnderstood(w.spec.Name, launcher.ToolVersion, err.Error())
	}
	own := m.Tools // what the program's output has
	m.Tools = versions(launcher, Output{})
	maps.Copy(m.Tools, own)
	mpi, err := w.implementationOf(p.Cell.Test)
	if err != nil {
		return Measurement{}, err
	}
	if mpi.carries != nil {
		by, err := mpi.carries(launcher)
		if err != nil {
			return Measurement{}, err
		}
		if past, err := m.carriedBy(by, outputs[0]); err != nil || past {
			return m, err
		}
	}
	var sent mpiBytes
	switch {
	case mpi.sent != nil:
		sent, err = mpi.sent(launcher)
	case w.sent != nil:
		sent, err = w.sent(p, launcher)
	case w.least != nil:
		least, err := w.least(p, hosts, launcher)
		if err != nil {
			return Measurement{}, err
		}
		err = m.accountLeast(least, hosts, outputs)
		return m, err
	default:
		err = errors.New("nothing reports what MPI sent")
	}
	if err != nil {
		return Measurement{}, err
	}
	err = m.account(sent, hosts, outputs)
	return m, err
}

// jobEnded is why a launcher or a daemon did not end well. What an agent ended comes first,
// as the cause of what the others say, then daemons that a signal ended, then the launcher;
// daemons that it does not say anything of are all named.
func jobEnded(hosts []MPIHost, outputs []Output) error {
	var killed, signalled, others []error
	for i, o := range outputs {
		end := "launcher"
		if i > 0 {
			end = "daemon at " + hosts[i].Address.String()
		}
		err := ended(end, o, LastLines(o))
		switch {
		case err == nil:
		case o.Killed != "":
			killed = append(killed, err)
		case i > 0 && o.ExitCode < 0:
			signalled = append(signalled, err)
		case i == 0:
			others = []error{err}
		case outputs[0].ExitCode == 0:
			others = append(others, err)
		}
	}
	if len(killed) > 0 {
		return killed[0]
	}
	if len(signalled) > 0 {
		return errors.Join(signalled...)
	}
	return errors.Join(others...)
}

// LastLines are the last lines that a launcher printed, without ruled ones and launch
// commands.
func LastLines(o Output) string {
	const most, each = 4, 160
	var said []string
	for _, text := range []string{o.Stdout, o.Stderr} {
		var lines []string
		for line := range strings.Lines(plain(text)) {
			line = strings.TrimSpace(line)
			if strings.Trim(line, "-=*#|+ ") == "" || strings.HasPrefix(line, openMPILaunch) || strings.HasPrefix(line, mpichLaunch) {
				continue
			}
			lines = append(lines, strings.ToValidUTF8(line[:min(len(line), each)], ""))
		}
		said = append(said, lines[max(0, len(lines)-most):]...)
	}
	return strings.Join(said, " / ")
}

// mpiSpec is what workloads of MPI have in common.
func mpiSpec(s Spec) Spec {
	s.ManyEnds, s.IPv4Only, s.DefaultCPUs = true, true, result.CPUsApart
	s.Factors = append(s.Factors, "ranks", "ranks_per_node", "cpus", "congestion_control")
	return s
}
