//go:build linux

package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// AllowFlag is the flag that lets a run change the whole machine.
const AllowFlag = "--allow-host-tuning"

// Apply gives a network namespace and its device what the profile asks for and
// belongs to them, and says of each setting what became of it. What is the
// whole machine's is not touched: its reason says so, or where wide is true it
// is left to a Machine and out of the list.
func Apply(ns netns.NS, device string, p Profile, wide bool) []result.Setting {
	var out []result.Setting
	for _, s := range p.Settings() {
		got, whole := apply(netns.Port{NS: ns, Device: device}, s)
		switch {
		case whole && wide:
			continue
		case whole && got.Value == s.Asked:
			got.Reason = "" // it is as asked all the same
		case whole:
			got.Reason += "; allow it with " + AllowFlag
		}
		out = append(out, got)
	}
	return out
}

// apply makes one setting; whole reports that it is the whole machine's.
func apply(at netns.Port, s Setting) (got result.Setting, whole bool) {
	got = result.Setting{Name: s.Name, Asked: s.Asked, Before: read(at, s.Name)}
	var err error
	offload, isOffload := strings.CutPrefix(s.Name, offloadWord)
	ring, isRing := strings.CutPrefix(s.Name, ringWord)
	switch {
	case isOffload:
		err = at.SetOffload(offload, s.Asked == "on")
	case isRing:
		err = setRing(at, ring, s.Asked)
	case s.Name == tunedName:
		got.Reason = "tuned changes the whole machine"
		return got, true
	case !strings.HasPrefix(s.Name, "net."):
		whole = true
	default:
		path := sysctlPath(s.Name)
		_, err = netns.TrySysctl(at.NS, netns.Setting{Path: path, Value: s.Asked})
		whole = errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) && onMachine(path)
	}
	got.Value = read(at, s.Name)
	switch {
	case whole:
		got.Reason = "it is the whole machine's, not a network namespace's"
	case errors.Is(err, fs.ErrNotExist):
		got.Reason = "this kernel has no such setting"
	case errors.Is(err, unix.EOPNOTSUPP):
		got.Reason = at.Device + " does not have it"
	case err != nil:
		got.Reason = err.Error()
	case got.Value != s.Asked:
		got.Reason = "the kernel took it and left it as it was"
	}
	return got, whole
}

// setRing sets one ring. A size that the device cannot have is refused before
// the kernel is asked, so that the reason names the largest.
func setRing(at netns.Port, which, asked string) error {
	want, err := strconv.Atoi(asked)
	if err != nil {
		return err
	}
	r, err := at.Rings()
	if err != nil {
		return err
	}
	most, rx, tx := r.MaxRX, want, 0
	if which == "tx" {
		most, rx, tx = r.MaxTX, 0, want
	}
	if want > most {
		return fmt.Errorf("%s takes at most %d", at.Device, most)
	}
	return at.SetRings(rx, tx)
}

// Read gives the values in force in a namespace and at its device of all that
// the profiles ask for. What cannot be read is absent.
func Read(ns netns.NS, device string, profiles []Profile) map[string]string {
	at := netns.Port{NS: ns, Device: device}
	values := map[string]string{}
	for _, p := range profiles {
		for _, s := range p.Settings() {
			if _, have := values[s.Name]; have {
				continue
			}
			if v := read(at, s.Name); v != "" {
				values[s.Name] = v
			}
		}
	}
	return values
}

// read gives the value of one setting, "" where it cannot be read.
func read(at netns.Port, name string) string {
	if offload, is := strings.CutPrefix(name, offloadWord); is {
		on, err := at.Offload(offload)
		if err != nil {
			return ""
		}
		return onOff(on)
	}
	if ring, is := strings.CutPrefix(name, ringWord); is {
		r, err := at.Rings()
		switch {
		case err != nil:
			return ""
		case ring == "tx":
			return strconv.Itoa(r.TX)
		}
		return strconv.Itoa(r.RX)
	}
	if name == tunedName {
		return "" // a Machine knows
	}
	v, err := netns.Sysctl(at.NS, sysctlPath(name))
	if err != nil {
		return ""
	}
	return v
}

// Doubts says, one line each, which settings of a profile did not take.
func Doubts(profile string, settings []result.Setting) []string {
	var out []string
	for _, s := range settings {
		if s.Reason == "" {
			continue
		}
		is := fmt.Sprintf("is %s, not %s", s.Value, s.Asked)
		switch s.Value {
		case "":
			is = "has no value, not " + s.Asked
		case s.Asked:
			is = fmt.Sprintf("applied %s only in part", s.Asked)
		}
		out = append(out, fmt.Sprintf("profile %s: %s %s: %s", profile, s.Name, is, s.Reason))
	}
	return out
}

// sysctlPath is a sysctl's file below /proc/sys.
func sysctlPath(name string) string { return strings.ReplaceAll(name, ".", "/") }

func onMachine(path string) bool {
	_, err := os.Stat(filepath.Join("/proc/sys", path))
	return err == nil
}

// Whole is the part of a profile that is the whole machine's: its sysctls that
// a network namespace does not have for itself, found by trying, and tuned.
func Whole(p Profile) (Profile, error) {
	whole := Profile{Name: p.Name, Tuned: p.Tuned, Sysctls: map[string]string{}}
	err := netns.Try("eth0", func(ns netns.NS) error {
		for name, value := range p.Sysctls {
			if _, is := apply(netns.Port{NS: ns, Device: "eth0"}, Setting{name, value}); is {
				whole.Sysctls[name] = value
			}
		}
		return nil
	})
	return whole, err
}
