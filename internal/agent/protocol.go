// Package agent is this program at a place: it runs one half of a sample there
// and answers on stdout to newline-delimited JSON requests on stdin. It opens
// no control port. When its input ends it kills what it started and exits.
package agent

import (
	"encoding/json"
	"time"

	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

// Protocol is the version of the requests; Hello refuses another.
const Protocol = 2

// The methods of a request.
const (
	MethodHello  = "hello"
	MethodServe  = "serve"
	MethodDrive  = "drive"
	MethodOpen   = "open"
	MethodClock  = "clock"
	MethodSlices = "slices"
	MethodFinish = "finish"
	// MethodAbandon ends one session, whatever it does, and answers nothing.
	MethodAbandon = "abandon"
	MethodWait    = "wait"
	MethodTools   = "tools"
	MethodFacts   = "facts"
	MethodIdle    = "idle"
	// MethodQuiet asks for how long the ranks of an MPI at this place have done nothing. It
	// may be asked while other calls run.
	MethodQuiet = "quiet"
	// MethodSwitched answers when the driving half at this place was answered by another
	// server than before a number of times. It may be asked while the half runs.
	MethodSwitched = "switched"
	MethodCancel   = "cancel"
	// MethodJoin opens the port of one rank of a job, MethodRank runs it.
	MethodJoin = "join"
	MethodRank = "rank"
	// MethodExpect opens a port at which pods report that are added, MethodArrived answers once
	// all of them have reported.
	MethodExpect  = "expect"
	MethodArrived = "arrived"
)

// StrangersDoubt begins a doubt about a tool's sample about strangers at its port.
const StrangersDoubt = "strangers: "

// Request is one line to the agent. Answers may come out of order.
type Request struct {
	ID     int64           `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Response is one line from the agent.
type Response struct {
	ID     int64           `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// HelloParams and HelloResult open the conversation.
type HelloParams struct {
	Protocol int `json:"protocol"`
}

// HelloResult identifies the agent that answers.
type HelloResult struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	PID      int    `json:"pid"`
	// Machine identifies a kernel and its boot: all places on one have the
	// same. "" is unknown.
	Machine string `json:"machine,omitempty"`
}

// ServeParams starts the serving half of a sample.
type ServeParams struct {
	Program workload.Program `json:"program"`
	// Port is to be served on; 0 is a free one.
	Port uint16 `json:"port,omitempty"`
	// Address is the one that is measured. Tools listen on it alone where it is one of the
	// place's own; "" or another one: on all.
	Address string `json:"address,omitempty"`
}

// ServeResult names the session and the port it serves on.
type ServeResult struct {
	Session string `json:"session"`
	Port    uint16 `json:"port"`
	// Commands are the launch commands that a launcher printed (workload.Launch).
	Commands []string `json:"commands,omitempty"`
}

// DriveParams runs the driving half; the answer, a workload.Output, comes when
// it is over.
type DriveParams struct {
	Program workload.Program `json:"program"`
	// Server is "address:port" for the native engine; a tool has it in its argv.
	Server string `json:"server,omitempty"`
}

// OpenResult is the answer to MethodOpen, whose parameters are DriveParams: the
// connections of a sliced run are open, and wait for their turns.
type OpenResult struct {
	Session string `json:"session"`
	// OpenNanoseconds is how long connecting took.
	OpenNanoseconds int64 `json:"open_nanoseconds"`
}

// ClockResult is the answer to MethodClock.
type ClockResult struct {
	// Now is the monotonic clock of the agent's machine, nanoseconds.
	Now int64 `json:"now_nanoseconds"`
}

// QuietResult is the answer to MethodQuiet.
type QuietResult struct {
	// For is for how long no rank has computed and TCP has sent no data; 0 where no job runs.
	For time.Duration `json:"for_nanoseconds"`
}

// SlicesParams has an opened session follow a schedule that begins at Start on the
// agent's monotonic clock. The answer, a workload.Output, comes when it is over;
// the session is closed then.
type SlicesParams struct {
	Session string         `json:"session"`
	Start   int64          `json:"start_nanoseconds"`
	Turns   []traffic.Turn `json:"turns"`
}

// JoinParams opens the port of a rank; the answer is a ServeResult. MethodAbandon ends a
// rank too.
type JoinParams struct {
	Job traffic.JobConfig `json:"job"`
}

// RankParams runs a rank that has joined, and answers when its job is over.
type RankParams struct {
	Session string `json:"session"`
	// Ranks are "address:port" of all ranks, in their order.
	Ranks []string `json:"ranks"`
}

// RankResult is the answer: the report, or why the rank could not go on.
type RankResult struct {
	Report *traffic.JobReport `json:"report,omitempty"`
	Failed *traffic.JobError  `json:"failed,omitempty"`
}

// ExpectParams opens the port for newcomers.
type ExpectParams struct {
	// Token is the one that their reports have, Names are those of the pods, and Address is the one
	// of the agent's own place that they report to.
	Token   string   `json:"token"`
	Names   []string `json:"names"`
	Address string   `json:"address"`
}

// ExpectResult is the answer: the port is open.
type ExpectResult struct {
	Port uint16 `json:"port"`
}

// ArrivedResult is the answer to MethodArrived, which has no parameters.
type ArrivedResult struct {
	Arrivals []Arrival `json:"arrivals"`
	// Strangers is how many connections sent something else than the report of an expected pod.
	Strangers int `json:"strangers,omitempty"`
}

// Arrival is the report of a newcomer.
type Arrival struct {
	Name string `json:"name"`
	// At is when it came, on the monotonic clock of the agent's machine, nanoseconds.
	At int64 `json:"at_nanoseconds"`
	// Ran is for how long the first process of the pod had run when it sent the report.
	Ran time.Duration `json:"ran_nanoseconds"`
}

// FinishParams ends a serving session and answers with its workload.Output.
type FinishParams struct {
	Session string `json:"session"`
	// Peer is the only address from which connections to a tool's port are expected; ""
	// where an address may be translated on the way, so that nobody knows it.
	Peer string `json:"peer,omitempty"`
}

// WaitParams asks for an answer when a serving session is over. It may be asked
// while other calls run.
type WaitParams struct {
	Session string `json:"session"`
}

// WaitResult is the answer.
type WaitResult struct {
	// Failed says why the half ended before it was asked to; "" where it did
	// what it had to.
	Failed string `json:"failed,omitempty"`
}

// SwitchedParams has MethodSwitched wait until the report of the driving half would have Count
// Switches (traffic.Report). The answer is empty.
type SwitchedParams struct {
	Count int `json:"count"`
}

// IdleParams asks for what the probes read while nothing is measured.
type IdleParams struct {
	Window time.Duration `json:"window_nanoseconds"`
	// WithoutProbes names the probes (probe.Names) that are not read.
	WithoutProbes []string `json:"without_probes,omitempty"`
}

// IdleResult is what they read, with probe.WindowSeconds.
type IdleResult struct {
	Probes map[string]float64 `json:"probes,omitempty"`
	// Doubts says what went wrong, Absent what this machine does not have.
	Doubts []string `json:"doubts,omitempty"`
	Absent []string `json:"absent,omitempty"`
}

// CancelParams ends everything that the agent has under way: an aborted sample
// leaves no process and no port behind. The answer is empty.
type CancelParams struct{}

// ToolsParams asks which tools are installed.
type ToolsParams struct {
	Tools []workload.Tool `json:"tools"`
}

// ToolsResult maps the name of each installed tool to its version line.
type ToolsResult struct {
	Versions map[string]string `json:"versions"`
}

// Facts is what the agent reports of its place for environment.json.
type Facts struct {
	Hostname string            `json:"hostname,omitempty"`
	Kernel   string            `json:"kernel"`
	MTUs     map[string]int    `json:"mtus"`     // device to MTU in bytes
	Sysctls  map[string]string `json:"sysctls"`  // those that matter, as read
	Offloads map[string]string `json:"offloads"` // "eth0 tcp-segmentation-offload" to "on", "off" …
	// Addresses maps each address of the place to its device.
	Addresses map[string]string `json:"addresses,omitempty"`
	// Drivers maps a device to what drives it: "veth", "macvlan", "virtio_net".
	Drivers map[string]string `json:"drivers,omitempty"`
	// Routes are the first of the IPv4 routes of the main table:
	// "0.0.0.0/0 via 10.244.1.1 dev eth0", "10.244.1.0/24 dev eth0".
	Routes []string `json:"routes,omitempty"`
}

// The names of conditions that an agent reads, in a record.
const (
	// ConditionQdisc is the queueing discipline of the device that an end sends by.
	ConditionQdisc = "qdisc"
	// ConditionCores are the cores ("PACKAGE/CORE") of the CPUs that an end ran on, and
	// ConditionNUMANodes their NUMA nodes.
	ConditionCores     = "cores"
	ConditionNUMANodes = "numa_nodes"
	// ConditionMemoryLimit is the lowest limit of an end's cgroups, bytes; absent where
	// there is none.
	ConditionMemoryLimit = "memory_limit_bytes"
)
