package unit

// The components that are not the kernel's work for the traffic.
const (
	// UserComponent is the ends' own time in user space.
	UserComponent = "user"
	// OtherComponent is kernel work that no rule names.
	OtherComponent = "other"
	// ElsewhereComponent is what other programs did on the machine.
	ElsewhereComponent = "elsewhere"
)

// Component is a part of a packet's way that CPU time is attributed to.
type Component struct {
	Name  string
	Label string // for people
	// Charged reports that it is a cost of the traffic.
	Charged bool
}

// Components lists them in the order in which reports show them, from the
// program down.
func Components() []Component {
	return []Component{
		{UserComponent, "user space", true},
		{"socket", "sockets, system calls, copying", true},
		{"transport", "TCP and UDP", true},
		{"ip", "IP", true},
		{"forwarding", "routing and forwarding", true},
		{"netfilter", "netfilter", true},
		{"bridge", "bridge", true},
		{"veth", "veth, macvlan, ipvlan", true},
		{"encapsulation", "encapsulation", true},
		{"ebpf", "eBPF programs", true},
		{"qdisc", "queueing and segmentation", true},
		{"driver", "device and receive path", true},
		{"scheduling", "softirq and scheduling", true},
		{"memory", "memory", true},
		{OtherComponent, "other", true},
		{ElsewhereComponent, "other programs", false},
	}
}

// ComponentSeconds is the name of a component's probe value: its part of the CPU
// time in the window, all CPUs together.
func ComponentSeconds(component string) string { return "component_" + component + "_cpu_seconds" }
