package traffic

// Where the two ends of a run are placed (Config.Placement).
const (
	// CPUsFree leaves both ends to the scheduler.
	CPUsFree = ""
	// CPUsSame has both ends on one CPU: what is measured is the cost of the path
	// alone, without waking another CPU and without a second one sharing the work.
	CPUsSame = "same"
	// CPUsApart has each end on one CPU of its own: on one machine different
	// cores of one NUMA node, no hyperthread siblings.
	CPUsApart = "apart"
)

// DatagramBuffer is the receive buffer that a run asks for, for each flow of datagrams, bytes.
// Without CAP_NET_ADMIN the kernel gives at most net.core.rmem_max. SO_RCVBUF then reads twice
// what was given (socket(7)).
const DatagramBuffer = 4 << 20

// The names of conditions in a report.
const (
	// ConditionCongestionControl is the algorithm in force on the sockets of a run.
	ConditionCongestionControl = "congestion_control"
	// ConditionReceiveBuffer is SO_RCVBUF in force, bytes, where a run sets it; of several
	// flows the last one's.
	ConditionReceiveBuffer = "receive_buffer_bytes"
	// ConditionScheduling is the scheduling policy of a pinned half's threads, and their nice
	// value unless that is 0: "batch, nice 10".
	ConditionScheduling = "scheduling"
)

// BackgroundRate is what each background stream carries, bits per second: that
// of Qi, Kulkarni and Ramakrishnan, Assessing Container Network Interface
// Plugins, IEEE TNSM 18(1), 2021.
const BackgroundRate = 10e6
