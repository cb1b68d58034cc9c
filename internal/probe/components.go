package probe

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/unit"
)

const (
	socketComponent     = "socket"
	memoryComponent     = "memory"
	schedulingComponent = "scheduling"
	idleComponent       = "idle"  // what processors do when they have nothing to do
	entryComponent      = "entry" // the way from user space into the kernel: sockets, where it is near
	neutral             = "neutral"
)

// causes are the components that what they allocate and free is charged to: it
// would not be done without them.
func causes(component string) bool {
	switch component {
	case "netfilter", "bridge", "veth", "encapsulation", "ebpf":
		return true
	}
	return false
}

//go:embed components.txt
var componentRules string

// Rules attribute stacks to components. They may be used by many at once.
type Rules struct {
	patterns map[string]string // a pattern's component; with the star for prefixes

	mu    sync.Mutex
	known map[string]string // names that were looked up before
}

// NewRules are those of components.txt.
func NewRules() (*Rules, error) { return parseRules(componentRules) }

func parseRules(text string) (*Rules, error) {
	r := &Rules{patterns: map[string]string{}, known: map[string]string{}}
	allowed := map[string]bool{neutral: true, idleComponent: true, entryComponent: true}
	for _, c := range unit.Components() {
		allowed[c.Name] = true
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, patterns, found := strings.Cut(line, ":")
		if !found || !allowed[name] {
			return nil, fmt.Errorf("components.txt:%d: %q is no component", n, name)
		}
		for _, p := range strings.Fields(patterns) {
			if other, twice := r.patterns[p]; twice && other != name {
				return nil, fmt.Errorf("components.txt:%d: %s is %s's already", n, p, other)
			}
			r.patterns[p] = name
		}
	}
	return r, nil
}

// of is the component that a function belongs to; "" for one that belongs to
// who called it.
func (r *Rules) of(function string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.known[function]; ok {
		return c
	}
	name, module, _ := strings.Cut(function, " ")
	name, _, _ = strings.Cut(strings.TrimLeft(name, "_"), ".")
	c := r.longest(name)
	if c == "" && module != "" {
		// "[nf_tables]" by "[nf_tables]", then by "[nf_*]".
		if c = r.patterns[module]; c == "" {
			for end := len(module) - 1; end > 0 && c == ""; end-- {
				c = r.patterns[module[:end]+"*]"]
			}
		}
	}
	if c == neutral {
		c = ""
	}
	r.known[function] = c
	return c
}

// longest is the component of the longest pattern that fits.
func (r *Rules) longest(name string) string {
	if c, ok := r.patterns[name]; ok {
		return c
	}
	for end := len(name); end > 0; end-- {
		if c, ok := r.patterns[name[:end]+"*"]; ok {
			return c
		}
	}
	return ""
}

// entryReach is how many unnamed functions may be inside the entry of a system
// call that is still taken for its cost.
const entryReach = 2

// Attribute gives the component of a stack of kernel functions, the innermost
// first. It is that of the innermost function that a rule names: what it calls
// and no rule names (locks, copying of memory, clocks) is done for it. Memory
// that a component of the network itself takes and gives back is that
// component's. An idle processor is idle unless an interrupt does something.
func (r *Rules) Attribute(stack []string) string {
	if r.idle(stack) {
		return idleComponent
	}
	for i, function := range stack {
		c := r.of(function)
		if c == "" || c == idleComponent {
			continue
		}
		if c == entryComponent {
			// All that a task does in the kernel is inside a system call: only what
			// is near its entry belongs to it, the rest is what no rule names.
			if i > entryReach {
				return unit.OtherComponent
			}
			return socketComponent
		}
		if c == memoryComponent {
			for _, outer := range stack[i+1:] {
				if o := r.of(outer); o != "" && o != memoryComponent {
					if causes(o) {
						return o
					}
					break
				}
			}
		}
		return c
	}
	return unit.OtherComponent
}

func (r *Rules) idle(stack []string) bool {
	idle := false
	for _, function := range stack {
		if interrupts(function) {
			return false
		}
		idle = idle || r.of(function) == idleComponent
	}
	return idle
}

// systemCall recognises a stack that is inside a system call of its task and not inside an
// interrupt: what is done there the task asked for. Softirqs that it raised run at the
// end of what raised them, in the same system call.
func (r *Rules) systemCall(stack []string) bool {
	called := false
	for _, function := range stack {
		if interrupts(function) && !inSoftirq(function) {
			return false
		}
		called = called || r.of(function) == entryComponent
	}
	return called
}

// interrupts recognises a function that does work of others than the running task.
func interrupts(function string) bool {
	name := strings.TrimLeft(function, "_")
	return inSoftirq(function) || strings.HasPrefix(name, "sysvec_") || strings.HasPrefix(name, "common_interrupt") || strings.HasPrefix(name, "irq_exit")
}

// inSoftirq recognises the function that runs softirqs: what is inside it is the
// packets' and not that of the task that it happens to interrupt.
func inSoftirq(function string) bool {
	return function == "handle_softirqs" || function == "__do_softirq"
}

// AttributeFolded gives the component of a stack as it was recorded (Folded), the
// outermost function first. What would be idle, or the beginning of a stack that
// no rule names, is unit.OtherComponent.
func (r *Rules) AttributeFolded(stack []string) string {
	if len(stack) == 1 && stack[0] == mark(unit.UserComponent) {
		return unit.UserComponent
	}
	inner := slices.Clone(stack)
	slices.Reverse(inner)
	if c := r.Attribute(inner); c != idleComponent {
		return c
	}
	return unit.OtherComponent
}

// mark replaces a stack that is not shown.
func mark(component string) string { return "[" + component + "]" }
