package baremetal

import (
	"fmt"
	"os"
	"strconv"

	"github.com/cnibench/cnibench/internal/answer"
)

// spareBytes must be free on a host in addition to the program.
const spareBytes = 16 << 20

// maxFact is above every number that a host can answer with: KiB of a disk, say.
const maxFact = 1 << 50

// take puts one line of the facts where it belongs. What is not a number
// stays 0, which below means that it is unknown. Texts are made safe to print; check
// refuses names that cannot be ones.
func (f *facts) take(key, value string) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > maxFact {
		n = 0
	}
	switch key {
	case "kernel":
		f.kernel = value
	case "uid":
		f.root = value == "0"
	case "python":
		f.python = value != ""
	case "ip":
		f.ip = value != ""
	case "passing":
		f.passingBytes = n * 1024
	case "free":
		f.freeBytes = n * 1024
	case "mount":
		f.mount = value == "1"
	case "cpus":
		f.cpus = int(n)
	case "model":
		f.cpuModel = answer.Line(value)
	case "memory":
		f.memoryBytes = n * 1024
	case "os":
		f.os = answer.Line(value)
	case "device":
		f.device = value
	case "mtu":
		f.mtu = int(n)
	case "speed":
		f.deviceMbps = int(n)
	}
}

// impossible says which answer of a host is none that an honest host can give, or nil. Its
// names become variables of Ansible and parts of records.
func (h Host) impossible(f facts) error {
	for _, c := range []struct {
		what, value string
		good        func(string) bool
	}{{"device", f.device, answer.Device}, {"kernel release", f.kernel, answer.Kernel}} {
		if c.value != "" && !c.good(c.value) {
			return &HostError{Host: h.Name, Text: fmt.Sprintf("answers with the %s %q, which cannot be one", c.what, answer.Line(c.value)), Cure: "find out what answers there before anything else"}
		}
	}
	return nil
}

// check says what a host lacks, or nil.
func (h Host) check(f facts, program string) error {
	if err := h.impossible(f); err != nil {
		return err
	}
	info, err := os.Stat(program)
	if err != nil {
		return err
	}
	need := info.Size() + spareBytes
	switch {
	case !f.python:
		return &HostError{Host: h.Name, Text: "has no python3, which Ansible needs", Cure: "there: apt-get install python3"}
	case !f.root:
		return &HostError{Host: h.Name, Text: "its settings can be changed by root only", Cure: "set ansible_user: root, or ansible_become: true with a sudo that asks for no password"}
	case f.mount:
		return &HostError{Host: h.Name, Text: h.Dir + " is a mount point, which cannot be removed afterwards", Cure: "name a folder in it: cnibench_dir: " + h.Dir + "/cnibench"}
	case f.freeBytes < need:
		return &HostError{Host: h.Name, Text: fmt.Sprintf("%d MiB are free for %s, %d are needed", f.freeBytes>>20, h.Dir, need>>20), Cure: "make room, or name another folder in cnibench_dir"}
	case f.passingBytes < need:
		return &HostError{Host: h.Name, Text: fmt.Sprintf("%d MiB are free in %s, which the program passes through, %d are needed", f.passingBytes>>20, passing, need>>20), Cure: "make room"}
	case !f.ip:
		return &HostError{Host: h.Name, Text: "has no ip, which tells its devices", Cure: "there: apt-get install iproute2"}
	case f.device != "" && f.mtu == 0:
		return &HostError{Host: h.Name, Text: "has no device " + f.device, Cure: "correct cnibench_device; ip link on that host lists its devices"}
	case f.device == "":
		return &HostError{Host: h.Name, Text: "has no route to the other end", Cure: "correct cnibench_address, or name the device in cnibench_device"}
	}
	return nil
}
