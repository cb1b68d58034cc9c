//go:build linux

package traffic

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ChooseCPUs chooses the CPUs of one end on this machine, among those that this process
// may use. Both ends of a run that share a machine choose by the same rule, so
// that they need no agreement. nil leaves the end to the scheduler.
func ChooseCPUs(placement string, server bool) ([]int, error) {
	return chooseCPUs("/sys/devices/system", placement, server)
}

func chooseCPUs(sys, placement string, server bool) ([]int, error) {
	if placement == CPUsFree {
		return nil, nil
	}
	allowed, err := allowedCPUs()
	if err != nil {
		return nil, err
	}
	return choose(sys, allowed, placement, server)
}

// choose picks from the end of the list: interrupts and the kernel's own work
// gather on the first CPUs.
func choose(sys string, allowed []int, placement string, server bool) ([]int, error) {
	client := allowed[len(allowed)-1]
	switch {
	case placement == CPUsSame, placement == CPUsApart && !server:
		return []int{client}, nil
	case placement != CPUsApart:
		return nil, fmt.Errorf("unknown placement %q (known: %s, %s, or none for the scheduler's choice)", placement, CPUsSame, CPUsApart)
	}
	at := topologyOf(sys, client)
	for _, cpu := range slices.Backward(allowed[:len(allowed)-1]) {
		if t := topologyOf(sys, cpu); t.node == at.node && t.core != at.core {
			return []int{cpu}, nil
		}
	}
	return nil, errors.New("cpus: apart needs two cores of one NUMA node, and this process may use fewer: choose same or free")
}

// ChooseRankCPUs chooses the CPUs of a program that starts ranks of a job on this machine:
// those of its ranks, which are numbered from 0 on each machine, as chooseRankCPU has them.
// nil leaves them to the scheduler.
func ChooseRankCPUs(placement string, ranks []int) ([]int, error) {
	allowed, err := allowedCPUs()
	if err != nil {
		return nil, err
	}
	var cpus []int
	for _, local := range ranks {
		one, err := chooseRankCPU(placement, local, allowed)
		if err != nil {
			return nil, err
		}
		for _, cpu := range one {
			if !slices.Contains(cpus, cpu) {
				cpus = append(cpus, cpu)
			}
		}
	}
	return cpus, nil
}

// allowedCPUs are those that this process may run on, in order.
func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("which CPUs may be used: %w", err)
	}
	var cpus []int
	for cpu := range maxCPUs {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// maxCPUs is what a unix.CPUSet has room for.
const maxCPUs = 1024

// topology is where a CPU is: the core and the NUMA node. A machine that does not
// say has a core for each CPU, and one node.
type topology struct{ core, node string }

func topologyOf(sys string, cpu int) topology {
	dir := filepath.Join(sys, "cpu", "cpu"+strconv.Itoa(cpu))
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, "topology", name))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	core, node := read("core_id"), ""
	if core == "" {
		core = "cpu" + strconv.Itoa(cpu)
	}
	nodes, _ := filepath.Glob(filepath.Join(dir, "node[0-9]*")) // the pattern is right
	if len(nodes) > 0 {
		node = filepath.Base(nodes[0])
	}
	return topology{read("physical_package_id") + "/" + core, node}
}

// Located names the cores ("PACKAGE/CORE") and the NUMA nodes that CPUs of a machine belong
// to, each once. sys is its /sys. A machine that does not say has no nodes.
func Located(sys string, cpus []int) (cores, nodes []string) {
	for _, cpu := range cpus {
		at := topologyOf(filepath.Join(sys, "devices/system"), cpu)
		if !slices.Contains(cores, at.core) {
			cores = append(cores, at.core)
		}
		if node := strings.TrimPrefix(at.node, "node"); node != "" && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	return cores, nodes
}

// setAlgorithm sets the congestion control of a socket.
func setAlgorithm(fd int, name string) error {
	err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
		return fmt.Errorf("congestion_control %s: %w: this kernel does not have it, or does not allow it here (net.ipv4.tcp_available_congestion_control, tcp_allowed_congestion_control)", name, err)
	}
	if err != nil {
		return fmt.Errorf("TCP_CONGESTION: %w", err)
	}
	return nil
}

// algorithmOf reads the congestion control in force on a socket.
func algorithmOf(fd int) (string, error) {
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return "", fmt.Errorf("TCP_CONGESTION: %w", err)
	}
	return strings.TrimRight(name, "\x00"), nil
}

// algorithmToSet is what must be set on each new socket in this namespace to have the
// run's congestion control; "" where new sockets have it already.
func (r *run) algorithmToSet(family int) (string, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return "", fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd) // it was never connected
	now, err := algorithmOf(fd)
	if err != nil {
		return "", err
	}
	wanted := r.cfg.CongestionControl
	if wanted == "" || wanted == now {
		r.noteAlgorithm(now)
		return "", nil
	}
	r.noteAlgorithm(wanted)
	return wanted, setAlgorithm(fd, wanted)
}

// noteAlgorithm keeps the congestion control in force, for the report.
func (r *run) noteAlgorithm(name string) { r.note(ConditionCongestionControl, name) }

// note keeps a condition in force, for the report.
func (r *run) note(name, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conditions == nil {
		r.conditions = map[string]string{}
	}
	r.conditions[name] = value
}

// noteSocket keeps the conditions in force on a connection.
func (r *run) noteSocket(fd int) error {
	algorithm, err := algorithmOf(fd)
	if err != nil {
		return err
	}
	r.noteAlgorithm(algorithm)
	if r.cfg.Sliced && r.cfg.Test == TCPStream {
		return r.noteBuffer(fd)
	}
	return nil
}

// noteBuffer keeps a socket's receive buffer.
func (r *run) noteBuffer(fd int) error {
	size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return fmt.Errorf("SO_RCVBUF: %w", err)
	}
	r.note(ConditionReceiveBuffer, strconv.Itoa(size))
	return nil
}

// noteScheduling keeps the policy of the calling thread, and its nice value unless that is 0.
func (r *run) noteScheduling() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return // what is not known is absent
	}
	names := map[uint32]string{unix.SCHED_NORMAL: "normal", unix.SCHED_BATCH: "batch", unix.SCHED_IDLE: "idle", unix.SCHED_FIFO: "fifo", unix.SCHED_RR: "round-robin"}
	name, known := names[attr.Policy]
	if !known {
		return
	}
	if attr.Nice != 0 {
		name += fmt.Sprintf(", nice %d", attr.Nice)
	}
	r.note(ConditionScheduling, name)
}
