// Package profile is the sets of node settings under which a campaign can
// measure: what each asks for, and what of it takes in a network namespace or
// on the machine. Nothing is assumed to have taken: everything is read back.
package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/cnibench/cnibench/ansible"
	"github.com/cnibench/cnibench/internal/result"
)

// Profile is a set of node settings: one file of ansible/profiles.
type Profile struct {
	Name    string `yaml:"name"`
	Summary string `yaml:"summary"`
	Source  string `yaml:"source"` // where it was published
	// Sysctls maps a name ("net.ipv4.tcp_sack") to its value.
	Sysctls map[string]string `yaml:"sysctls"`
	// Offloads maps a device's offload in ethtool's words ("gro") to on.
	Offloads map[string]bool `yaml:"offloads"`
	// Rings maps "rx" and "tx" to a size in packets.
	Rings map[string]int `yaml:"rings"`
	// Tuned is the profile of tuned that is to be active; "": none.
	Tuned string `yaml:"tuned"`
}

// names lists the profiles in the order in which people are shown them.
func names() []string {
	return []string{
		result.DefaultProfile, "kernel_optimizations", "nic_optimizations",
		"accelerator-performance", "hpc-compute", "latency-performance", "network-latency", "network-throughput",
	}
}

// List is every profile. It fails only where the files that the program
// carries are broken.
func List() ([]Profile, error) { return list(ansible.Files, names()) }

func list(files fs.FS, names []string) ([]Profile, error) {
	var all []Profile
	var errs []error
	for _, name := range names {
		data, err := fs.ReadFile(files, "profiles/"+name+".yml")
		if err == nil {
			var p Profile
			if p, err = parse(data); err == nil && p.Name != name {
				err = fmt.Errorf("it is named %q inside", p.Name)
			}
			all = append(all, p)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("profile %s: %w", name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return all, nil
}

// parse reads one profile's file strictly.
func parse(data []byte) (Profile, error) {
	var p Profile
	if err := yaml.UnmarshalWithOptions(data, &p, yaml.Strict()); err != nil {
		return p, err
	}
	for name := range p.Sysctls {
		if strings.ContainsAny(name, "/ ") || !strings.Contains(name, ".") {
			return p, fmt.Errorf("%q is no sysctl: write it as net.ipv4.tcp_sack", name)
		}
	}
	for name, n := range p.Rings {
		if name != "rx" && name != "tx" || n < 1 {
			return p, fmt.Errorf("ring %s of %d: want rx or tx and a size of at least 1", name, n)
		}
	}
	return p, nil
}

// Find looks a profile up by name; the error lists the known names.
func Find(name string) (Profile, error) {
	all, err := List()
	if err != nil {
		return Profile{}, err
	}
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
	}
	return Profile{}, fmt.Errorf("unknown profile %q (known: %s)", name, strings.Join(names(), ", "))
}

// Names is the names of every profile.
func Names() []string { return names() }

// Setting is one thing that a profile asks for.
type Setting struct {
	// Name is what records call it: "net.ipv4.tcp_sack", "offload gro",
	// "ring rx", "tuned".
	Name string
	// Asked is the value asked for, "on" and "off" for an offload.
	Asked string
}

// The first words of a setting's name that is no sysctl.
const (
	offloadWord = "offload "
	ringWord    = "ring "
	tunedName   = "tuned"
)

// Settings lists what the profile asks for, sorted by kind and name.
func (p Profile) Settings() []Setting {
	var all []Setting
	for _, name := range slices.Sorted(maps.Keys(p.Sysctls)) {
		all = append(all, Setting{name, p.Sysctls[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(p.Offloads)) {
		all = append(all, Setting{offloadWord + name, onOff(p.Offloads[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(p.Rings)) {
		all = append(all, Setting{ringWord + name, strconv.Itoa(p.Rings[name])})
	}
	if p.Tuned != "" {
		all = append(all, Setting{tunedName, p.Tuned})
	}
	return all
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
