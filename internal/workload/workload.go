// Package workload is the list of traffics that a campaign can name. One file
// each: what it needs, how it serves, how it drives, how its output is parsed.
package workload

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// Params is what a workload is asked to do in one sample.
type Params struct {
	Cell   result.Cell
	Warmup time.Duration
	Window time.Duration
	// Sliced has the sample come in slices, of Window each after Warmup.
	Sliced bool
	Token  string
	// SharedClock reports that both places read one clock.
	SharedClock bool
}

// Program is what an agent runs at one end: the native engine or a tool.
type Program struct {
	// Native, when not nil, is run by the engine inside the agent.
	Native *traffic.Config `json:"native,omitempty"`
	// Argv is a tool; Argv[0] is looked up in PATH at the place. In every
	// argument "{address}", "{port}" and "{dir}" (a scratch folder of this run,
	// removed after it; also in Env) are replaced by the agent, and in a serving tool's "{bind}" (the
	// address to listen on) and "{listen}" (the same with the port). An agent that is root
	// runs tools as another user, who owns {dir}.
	Argv []string `json:"argv,omitempty"`
	// AnyAddress is what {bind} is where the measured address is none of the place's own,
	// as that of a service: "0.0.0.0" or "::".
	AnyAddress string `json:"any_address,omitempty"`
	// Env adds to the tool's environment, "LC_ALL=C".
	Env []string `json:"env,omitempty"`
	// Files are written into {dir} before the start: name to content.
	Files map[string]string `json:"files,omitempty"`
	// NetAdmin lets a tool set a congestion control that the machine does not allow
	// to all users.
	NetAdmin bool `json:"net_admin,omitempty"`
	// Placement has a tool run on the CPUs that traffic.ChooseCPUs chooses, or one that starts
	// ranks of a job on those that traffic.ChooseRankCPUs chooses for LocalRanks, which are
	// numbered from 0 on each machine.
	Placement  string `json:"placement,omitempty"`
	LocalRanks []int  `json:"local_ranks,omitempty"`
	// MeasuredAddress is an address of this place. "{device}" is replaced by the name of
	// its device, whose bytes are counted as long as the tool runs; "": nothing is counted.
	MeasuredAddress string `json:"measured_address,omitempty"`
	// OwnPIDs has all that a tool starts end with it, also what leaves its process group,
	// where the agent may make a PID namespace.
	OwnPIDs bool `json:"own_pids,omitempty"`
	// Launch reports that a serving tool is a launcher of ranks; nil: it is none.
	Launch *Launch `json:"launch,omitempty"`
	// Port asks the agent for a free port for {port} (TCP and UDP alike).
	Port bool `json:"port,omitempty"`
	// Interrupt asks the agent to end a serving tool by SIGINT instead of
	// SIGTERM: some say what they received only then (sockperf's server).
	Interrupt bool `json:"interrupt,omitempty"`
	// Ready is how a serving tool shows that it serves: "tcp" (the port
	// accepts), "udp" (the port is bound, from /proc/net/udp).
	Ready string `json:"ready,omitempty"`
	// StillThere asks the agent to look, when a driving tool has ended well,
	// whether the server's port still takes connections: some tools see nothing
	// wrong with a path that was cut.
	StillThere bool `json:"still_there,omitempty"`
	// Timeout is when the agent kills the tool and reports that.
	Timeout time.Duration `json:"timeout_nanoseconds"`
	// WindowOffset and Window are, for a tool, where after its start the
	// measured window lies, so that probes are read there.
	WindowOffset time.Duration `json:"window_offset_nanoseconds,omitempty"`
	Window       time.Duration `json:"window_nanoseconds,omitempty"`
	// WithoutProbes names the probes (probe.Names) that are not read at this end.
	WithoutProbes []string `json:"without_probes,omitempty"`
}

// Output is what came of a Program at one end.
type Output struct {
	Native   *traffic.Report `json:"native,omitempty"`
	Argv     []string        `json:"argv,omitempty"` // as run, all replaced
	Stdout   string          `json:"stdout,omitempty"`
	Stderr   string          `json:"stderr,omitempty"`
	ExitCode int             `json:"exit_code,omitempty"`
	// OutOfMemory reports that the kernel ended the tool for lack of memory.
	OutOfMemory bool `json:"out_of_memory,omitempty"`
	// Killed says why the agent ended the tool: "timeout", or "" where it
	// ended on its own or, a server, because the sample was over.
	Killed string `json:"killed,omitempty"`
	// Unreachable says why a server could not be reached any more when its
	// client had ended well (Program.StillThere).
	Unreachable string `json:"unreachable,omitempty"`
	// Source is the address that a driving tool's place sends to the server from; "" where
	// it is not known.
	Source string `json:"source,omitempty"`
	// Conditions are those in force at this end that its agent read.
	Conditions map[string]string `json:"conditions,omitempty"`
	// CPUs are those that a tool was pinned to; nil: the scheduler chose.
	CPUs []int `json:"cpus,omitempty"`
	// Device is what the measured device carried while the tool ran; nil: not counted.
	Device *Device `json:"device,omitempty"`
	// ToolVersion is the first line that `tool --version` (or its like) printed.
	ToolVersion string `json:"tool_version,omitempty"`
	// Probes is what the probes read at this end's window.
	Probes map[string]float64 `json:"probes,omitempty"`
	// Stacks is what the kernel did in that window, as probe.Stacks writes it.
	Stacks string `json:"stacks,omitempty"`
	// Doubts says what went wrong in addition to the traffic, such as a probe that
	// could not be read; they belong to the sample's warnings.
	Doubts []string `json:"doubts,omitempty"`
}

// Measurement is what a sample's record is filled from.
type Measurement struct {
	MeasuredSeconds float64
	Metrics         map[string]float64 // names of unit.Metrics, base units
	Histogram       *result.Histogram
	Series          *result.Series
	// SliceRates are the primary rates of a sliced sample's slices, per second.
	SliceRates []float64
	// Job is as in a sample.
	Job *result.Job
	// PluginSeconds is as in a sample.
	PluginSeconds map[string]map[string]float64
	Tools         map[string]string
	Warnings      []string
}

// Spec describes a workload to people and to the planner.
type Spec struct {
	Name    string
	Summary string // one line for `cnibench list workloads`
	// Primary is the metric whose efficiency is reported and stopped on.
	Primary string
	// PrimaryByTest names it for the tests whose primary metric is another.
	PrimaryByTest map[string]string
	// Needs are the tools at each end; none for the native engine.
	Needs []Tool
	// Factors says which optional factors of a campaign's workload this one
	// takes ("message_bytes", "streams", "response_bytes", …); others are refused.
	Factors []string
	// Tests are the allowed values of test, the first the default; empty when
	// the workload has none. Protocols likewise.
	Tests     []string
	Protocols []string
	// MostMessageBytes is the largest message; 0: 64 KiB.
	MostMessageBytes int
	// DefaultMessageBytes is used where a campaign names no message size; 0
	// where the workload has no message size.
	DefaultMessageBytes int
	// SetsCongestionControl reports that the traffic itself sets congestion_control. That
	// of others is set in a lab's namespaces alone.
	SetsCongestionControl bool
	// DefaultCPUs is where both ends run in a lab where a campaign does not say: one
	// of the values of result.Cell.CPUs; DefaultCPUsByTest for tests that differ.
	DefaultCPUs       string
	DefaultCPUsByTest map[string]string
	// DefaultStreams is used where a campaign names no streams; 0 means 1.
	DefaultStreams int
	// ManyEnds reports that its ends are ranks, and Algorithms are the allowed values of
	// algorithm, the first the default; empty when the workload has none.
	ManyEnds   bool
	Algorithms []string
	// ExactRanks is the only number of ranks that it can have; 0: any from 2 on.
	// ExactRanksByTest is that of tests which differ.
	ExactRanks       int
	ExactRanksByTest map[string]int
	// MostRanks is the largest number of ranks; 0: as many as the factor allows.
	MostRanks int
	// IPv4Only reports that it cannot use IPv6.
	IPv4Only bool
}

// LargestMessage is the largest message that a campaign may ask for, bytes.
func (s Spec) LargestMessage() int { return cmp.Or(s.MostMessageBytes, 64<<10) }

// PrimaryFor is the primary metric of one of the workload's tests.
func (s Spec) PrimaryFor(test string) string {
	if metric, ok := s.PrimaryByTest[test]; ok {
		return metric
	}
	return s.Primary
}

// CPUsFor is DefaultCPUs of one of the workload's tests.
func (s Spec) CPUsFor(test string) string {
	if cpus, ok := s.DefaultCPUsByTest[test]; ok {
		return cpus
	}
	return s.DefaultCPUs
}

// Ranks is the only number of ranks that one of the workload's tests can have; 0: any from
// 2 on.
func (s Spec) Ranks(test string) int {
	if n, ok := s.ExactRanksByTest[test]; ok {
		return n
	}
	return s.ExactRanks
}

// Tool is a program that a workload needs, and the Debian package with it.
type Tool struct {
	Name, Package string
	// Cure says how to get a program that no package has, without which images are made
	// where it is not installed; "": Package has it.
	Cure    string
	Version []string // argv that prints its version; nil: its output has it
	// Test is the only test that needs it, and MPI the only MPI whose tests need it; "": all
	// do.
	Test, MPI string
	// Calls are further programs that it starts, and Reads the files and folders that it
	// reads beside its libraries, as patterns of path.Match: an image needs both.
	Calls []string `json:"-"`
	Reads []string `json:"-"`
}

// Install is the command or the sentence that says how to get the program.
func (t Tool) Install() string {
	if t.Cure != "" {
		return t.Cure
	}
	return "apt-get install " + t.Package
}

// NeededBy reports whether a test of the workload needs the tool.
func (t Tool) NeededBy(test string) bool {
	return (t.Test == "" || t.Test == test) && (t.MPI == "" || t.MPI == mpiOf(test))
}

// Workload is one traffic.
type Workload interface {
	Spec() Spec
	// Serve is the program for the server's place.
	Serve(p Params) (Program, error)
	// Drive is the program for the client's place.
	Drive(p Params, server netip.AddrPort) (Program, error)
	// Parse reads what both ends gave. An error is the sample's failure reason.
	Parse(p Params, server, client Output) (Measurement, error)
}

// List is every workload, in the order in which help shows them.
func List() []Workload {
	return []Workload{
		TCPStream(), UDPStream(), TCPRR(), UDPRR(), TCPCRR(), LatencyUnderLoad(),
		AllToAll(), AllGather(), AllReduce(), Barrier(), Incast(), Outcast(), HaloExchange(),
		Iperf3{}, Netperf{}, Sockperf{}, Redis{}, HTTP{}, PodSetup{}, NewServiceUpdate(),
		MPINetPIPE(), MPIHPCC(),
		MPIOSU(), MPIIMB(),
	}
}

// SetsCongestionControl reports whether the traffic of a workload sets congestion_control
// itself; a workload that is not known does not.
func SetsCongestionControl(name string) bool {
	w, err := Find(name)
	return err == nil && w.Spec().SetsCongestionControl
}

// Find looks a workload up by name; the error lists the known names.
func Find(name string) (Workload, error) {
	var known []string
	for _, w := range List() {
		if w.Spec().Name == name {
			return w, nil
		}
		known = append(known, w.Spec().Name)
	}
	return nil, fmt.Errorf("unknown workload %q (known: %s)", name, strings.Join(known, ", "))
}
