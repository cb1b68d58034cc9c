// Package buildable has the names of what a lab can build, for programs on systems that
// cannot build one: reports, comparisons and runs on clusters use them everywhere. On
// Linux the lists themselves are asked.
package buildable

// Network is what is known of a network that campaigns may name.
type Network struct {
	Name    string
	Summary string
	// Kind, Model and Encapsulation are as `cnibench list networks` shows them.
	Kind          string
	Model         string
	Encapsulation string
	// Variant reports that the network is another one with an option, such as +sockmap,
	// and that lists leave it out.
	Variant bool
	// Policy reports that its pods are under a policy.
	Policy bool
	// Plugins are the CNI plugins that it uses.
	Plugins []string
}

// Step is one step of a ladder, from the network before it.
type Step struct {
	Network string
	// Adds names what the step adds.
	Adds string
	// Components are those of sampled stacks that the step adds to.
	Components []string
}

// Ladder is the way from the bare network up to a network, the lowest step first.
type Ladder struct {
	Network string
	Steps   []Step
}

// ServiceProxy is what is known of an implementation of services.
type ServiceProxy struct {
	Name    string
	Summary string
	// Model is what it was modelled on.
	Model string
}

// Link is a wire between nodes that campaigns may name.
type Link struct {
	Name    string
	Summary string
	// TotalBitsPerSecond is what it carries in each direction, all its wires together; 0
	// is as fast as the machine.
	TotalBitsPerSecond uint64
}

// LinkRate is what a link carries in each direction, all its wires together; ok is false for
// one that is as fast as the machine, or unknown.
func LinkRate(name string) (bitsPerSecond float64, ok bool) {
	for _, l := range Links() {
		if l.Name == name && l.TotalBitsPerSecond > 0 {
			return float64(l.TotalBitsPerSecond), true
		}
	}
	return 0, false
}

// Count is how many instructions a network takes per packet or transaction.
type Count struct {
	Network, Workload, Placement string
	Instructions                 float64
}
