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

// The names of conditions in a report.
const (
	// ConditionCongestionControl is the algorithm in force on the sockets of a run.
	ConditionCongestionControl = "congestion_control"
	// ConditionReceiveBuffer is SO_RCVBUF in force, bytes, where a run sets it.
	ConditionReceiveBuffer = "receive_buffer_bytes"
	// ConditionScheduling is the scheduling policy of a pinned half's threads.
	ConditionScheduling = "scheduling"
)

// BackgroundRate is what each background stream carries, bits per second: that
// of Qi, Kulkarni and Ramakrishnan, Assessing Container Network Interface
// Plugins, IEEE TNSM 18(1), 2021.
const BackgroundRate = 10e6
