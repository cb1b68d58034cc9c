package netns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// A network namespace other than the machine's own takes only the congestion controls of
// net.ipv4.tcp_allowed_congestion_control, and so does a process without CAP_NET_ADMIN. A
// lab may not change that setting, which is the whole machine's. Programs of eBPF at a
// cgroup of the lab may choose any algorithm that the kernel has, for the sockets of that
// cgroup alone, and are gone with it.

// maxAlgorithm is the length of a congestion control's name with its end (TCP_CA_NAME_MAX).
const maxAlgorithm = 16

// AllowsCongestionControl reports whether every process of every namespace may choose an
// algorithm, by the machine's net.ipv4.tcp_allowed_congestion_control.
func AllowsCongestionControl(name string) (bool, error) {
	data, err := os.ReadFile("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
	if err != nil {
		return false, fmt.Errorf("allowed congestion controls: %w", err)
	}
	return slices.Contains(strings.Fields(string(data)), name), nil
}

// AllowCongestionControls lets the processes of a cgroup (version 2) and of those below it
// set any congestion control of the kernel on their sockets (setsockopt(2),
// TCP_CONGESTION). It lasts as long as the cgroup.
func AllowCongestionControls(cgroup *os.File) error {
	const (
		atSocket, atValue, atEnd = 0, 8, 16 // struct bpf_sockopt (linux/bpf.h)
		atLevel, atName, atLen   = 24, 28, 32
	)
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, atLevel, asm.Word),
		asm.JNE.Imm(asm.R2, unix.SOL_TCP, "out"),
		asm.LoadMem(asm.R2, asm.R6, atName, asm.Word),
		asm.JNE.Imm(asm.R2, unix.TCP_CONGESTION, "out"),
		asm.LoadMem(asm.R7, asm.R6, atValue, asm.DWord),
		asm.LoadMem(asm.R8, asm.R6, atEnd, asm.DWord),
		asm.Mov.Imm(asm.R3, 0),
		asm.StoreMem(asm.RFP, -16, asm.R3, asm.DWord),
		asm.StoreMem(asm.RFP, -8, asm.R3, asm.DWord),
	}
	for i := int32(0); i < maxAlgorithm-1; i++ { // the name, as far as it goes
		code = append(code,
			asm.Mov.Reg(asm.R2, asm.R7), asm.Add.Imm(asm.R2, i+1), asm.JGT.Reg(asm.R2, asm.R8, "set"),
			asm.LoadMem(asm.R3, asm.R7, int16(i), asm.Byte), asm.StoreMem(asm.RFP, int16(i-maxAlgorithm), asm.R3, asm.Byte))
	}
	code = append(code, asm.LoadMem(asm.R1, asm.R6, atSocket, asm.DWord).WithSymbol("set"))
	code = append(code, setFromStack()...)
	code = append(code,
		asm.JNE.Imm(asm.R0, 0, "out"), // the kernel says why, as without this program
		asm.Mov.Imm(asm.R1, -1),
		asm.StoreMem(asm.R6, atLen, asm.R1, asm.Word), // it is done: the kernel need not
		asm.Mov.Imm(asm.R0, 1).WithSymbol("out"),
		asm.Return(),
	)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "cnb_allow_cc", Type: ebpf.CGroupSockopt, AttachType: ebpf.AttachCGroupSetsockopt, License: "GPL", Instructions: code})
	if err != nil {
		return fmt.Errorf("congestion control: %w", err)
	}
	err = link.RawAttachProgram(link.RawAttachProgramOptions{Target: int(cgroup.Fd()), Program: p, Attach: ebpf.AttachCGroupSetsockopt, Flags: unix.BPF_F_ALLOW_MULTI})
	if err != nil {
		err = fmt.Errorf("congestion control: cgroup %s: %w", cgroup.Name(), err)
	}
	return errors.Join(err, p.Close())
}

// setFromStack calls bpf_setsockopt for the socket in R1 with the name in the 16 bytes
// below the frame pointer.
func setFromStack() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R2, unix.SOL_TCP),
		asm.Mov.Imm(asm.R3, unix.TCP_CONGESTION),
		asm.Mov.Reg(asm.R4, asm.RFP),
		asm.Add.Imm(asm.R4, -maxAlgorithm),
		asm.Mov.Imm(asm.R5, maxAlgorithm),
		asm.FnSetsockopt.Call(),
	}
}

// UseCongestionControl gives the TCP sockets of a cgroup's processes an algorithm when
// they listen and when they connect, whatever they chose themselves: for programs that
// have no flag for it. It lasts until what it gives is closed.
func UseCongestionControl(cgroup *os.File, algorithm string) (io.Closer, error) {
	if len(algorithm) >= maxAlgorithm {
		return nil, fmt.Errorf("congestion control %s: a name has at most %d bytes", algorithm, maxAlgorithm-1)
	}
	const connecting, accepted, listening = 3, 5, 11 // BPF_SOCK_OPS_… (linux/bpf.h)
	code := asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), // bpf_sock_ops.op
		asm.JEq.Imm(asm.R2, connecting, "set"),
		asm.JEq.Imm(asm.R2, accepted, "set"),
		asm.JEq.Imm(asm.R2, listening, "set"),
		asm.Ja.Label("out"),
		asm.Mov.Imm(asm.R3, 0).WithSymbol("set"),
		asm.StoreMem(asm.RFP, -16, asm.R3, asm.DWord),
		asm.StoreMem(asm.RFP, -8, asm.R3, asm.DWord),
	}
	for i := range len(algorithm) {
		code = append(code, asm.Mov.Imm(asm.R3, int32(algorithm[i])), asm.StoreMem(asm.RFP, int16(i-maxAlgorithm), asm.R3, asm.Byte))
	}
	code = append(code, setFromStack()...)
	code = append(code, asm.Mov.Imm(asm.R0, 1).WithSymbol("out"), asm.Return())
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "cnb_use_cc", Type: ebpf.SockOps, License: "GPL", Instructions: code})
	if err != nil {
		return nil, fmt.Errorf("congestion control: %w", err)
	}
	l, err := link.AttachRawLink(link.RawLinkOptions{Target: int(cgroup.Fd()), Program: p, Attach: ebpf.AttachCGroupSockOps})
	if err != nil {
		err = fmt.Errorf("congestion control: cgroup %s: %w", cgroup.Name(), err)
		return nil, errors.Join(err, p.Close())
	}
	return l, p.Close() // the link holds the program
}
