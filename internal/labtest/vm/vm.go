// Package vm boots Debian's stock kernel, or that of its backports, with its modules in
// qemu, by software emulation, and runs one program there: what this machine's kernel
// cannot build is tested so, and instructions are counted so where there are no counters.
// No time that a program measures in there says anything about performance.
package vm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
)

// Qemu and QemuPackage name the emulator, for those who ask whether it is installed.
const (
	Qemu        = "qemu-system-x86_64"
	QemuPackage = "qemu-system-x86"
)

// Machine is what to boot.
type Machine struct {
	// Runner starts qemu; it must live longer than the machine.
	Runner *exec.Runner
	Kernel Kernel
	CPUs   int
	// MemoryMiB is all that the guest has: programs, and what they write, as the
	// machine's own files cannot be changed from inside.
	MemoryMiB int
	// CountInstructions makes the guest's clock advance by one nanosecond for
	// each instruction that its one CPU executes, and with real time while that
	// is idle. CPUs must be 1 then.
	CountInstructions bool
}

// Program is what to run in the guest, as root, with this machine's files under
// it: all of them can be read, and what is written is gone with the guest. /run
// is empty.
type Program struct {
	// Path is a program of this machine; it is copied into the guest, so that
	// nothing of it is read while it runs.
	Path string
	Args []string
	Env  []string
	Dir  string // of this machine's files; "" is the root
}

// ExitError says that the program ended with another status than 0.
type ExitError struct{ Status int }

func (e *ExitError) Error() string {
	return fmt.Sprintf("the program in the virtual machine ended with status %d", e.Status)
}

// statusMark is written by run.sh after what the program wrote, which may have
// been in the middle of a line; the program's exit status follows.
const statusMark = "\x1evm: exit status "

// Run boots, writes what the program writes to out as it comes, line by line,
// and waits for the machine to go off. The error is an *ExitError where the
// program ended on its own; else it holds the end of the guest's console.
func (m Machine) Run(ctx context.Context, p Program, out io.Writer) (err error) {
	if m.CountInstructions && m.CPUs != 1 {
		return fmt.Errorf("instructions are counted on 1 CPU, not on %d", m.CPUs)
	}
	dir, err := os.MkdirTemp("", "cnb-vm-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	initramfs, console := filepath.Join(dir, "initramfs"), filepath.Join(dir, "console")
	if err := m.writeInitramfs(ctx, filepath.Join(dir, "tree"), initramfs, p); err != nil {
		return err
	}
	proc, err := m.Runner.StartPiped(ctx, exec.Cmd{Argv: m.qemu(initramfs, console)})
	if err != nil {
		return err
	}
	status, readErr := copyOutput(out, proc.Stdout)
	waitErr := proc.Wait()
	switch {
	case status == 0:
		return nil
	case status > 0:
		return &ExitError{status}
	case ctx.Err() != nil:
		waitErr = context.Cause(ctx)
	}
	return errors.Join(errors.New("the virtual machine went off before its program had ended"), readErr, waitErr, consoleEnd(console))
}

// qemu is the command. The guest's first serial line is its console, the second
// takes what the program writes.
func (m Machine) qemu(initramfs, console string) []string {
	argv := []string{
		Qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		// Stock kernels were seen hanging on /dev/kvm; and instructions are
		// counted by emulation alone.
		"-accel", "tcg", "-cpu", "qemu64", "-smp", strconv.Itoa(m.CPUs), "-m", strconv.Itoa(m.MemoryMiB),
		"-kernel", m.Kernel.Image, "-initrd", initramfs,
		"-append", m.kernelArguments(),
		"-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
		"-serial", "file:" + console, "-serial", "stdio",
	}
	if m.CountInstructions {
		argv = append(argv, "-icount", "shift=0")
	}
	return argv
}

// kernelArguments are those of the guest's kernel. Where instructions are not counted, it
// does not wait for all CPUs to pass by the scheduler before it frees what they may use,
// which most changes of namespaces, devices and rules wait for: it interrupts them.
func (m Machine) kernelArguments() string {
	const always = "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on tsc=reliable"
	if m.CountInstructions {
		return always
	}
	return always + " rcupdate.rcu_expedited=1"
}

// copyOutput copies lines until the one with the program's exit status,
// which is -1 where none came.
func copyOutput(out io.Writer, in io.Reader) (status int, err error) {
	status = -1
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if status < 0 {
			text, after, is := strings.Cut(line, statusMark)
			if n, err := strconv.Atoi(strings.TrimSpace(after)); is && err == nil {
				line, status = text, n
			}
			if _, err := io.WriteString(out, line); err != nil {
				return status, err
			}
		}
		if err == io.EOF {
			return status, nil
		}
		if err != nil {
			return status, err
		}
	}
}

// consoleEnd is the last that the kernel and init said.
func consoleEnd(path string) error {
	const most = 4000
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return fmt.Errorf("the end of its console:\n%s", b[max(0, len(b)-most):])
}
