package baremetal

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/answer"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
)

// TuneTime is what changing profile or MTU takes, for estimates made before
// anything was measured: Ansible's start and one connection to each host.
const TuneTime = 4 * time.Second

// tune gives both hosts a profile and MTU, where they have others.
func (b *Testbed) tune(ctx context.Context, want tuning) error {
	if b.tuned == want {
		return nil
	}
	vars := map[string]any{
		"profile": want.profile, "mtu": want.mtu, "watch": b.watch(),
		"devices": map[string]string{b.ends[0].host.Name: b.ends[0].facts.device, b.ends[1].host.Name: b.ends[1].facts.device},
	}
	b.tuned = tuning{} // unknown where it fails half-way
	records, err := b.player.play(ctx, b.inventory.Path, "tune", vars, "")
	if err != nil {
		return fmt.Errorf("profile %s, MTU %d: %w", want.profile, want.mtu, err)
	}
	for _, e := range b.ends {
		found := false
		for _, r := range records {
			if r.Host == e.host.Name && r.Values != nil {
				if err := e.read(want.profile, r); err != nil {
					return err
				}
				b.note(want.profile, e, r)
				found = true
			}
		}
		if !found {
			return fmt.Errorf("profile %s: %s does not say what is in force", want.profile, e.name())
		}
	}
	b.tuned = want
	return nil
}

// watch names what records report, in the module's words: all that any profile
// of the campaign asks for.
func (b *Testbed) watch() []string {
	all := []string{}
	for _, p := range b.profiles {
		for _, s := range p.Settings() {
			name := s.Name
			if strings.Contains(name, ".") {
				name = "sysctl " + name
			}
			all = append(all, name)
		}
	}
	return all
}

// mtuName is what the module calls the MTU. It is a factor of cells and no
// setting of a profile: without it nothing is measured.
const mtuName = "mtu"

// read takes what a host says is in force.
func (e *end) read(name string, r record) error {
	e.values, e.mtus = map[string]string{}, nil
	values, err := answer.Values(r.Values)
	if err != nil {
		return &HostError{Host: e.host.Name, Text: err.Error(), Cure: "find out what answers there before anything else"}
	}
	for k, v := range values {
		if plainName(k) != mtuName { // a record has the MTU of the device itself
			e.values[plainName(k)] = v
		}
	}
	e.asked = settingsOf(r)
	e.doubts = profile.Doubts(name, e.asked)
	for _, s := range r.Settings {
		if plainName(s.Name) == mtuName && s.Reason != "" {
			return &HostError{Host: e.host.Name, Text: "an MTU of " + s.Asked + " does not take: " + s.Reason, Cure: "name another MTU in the campaign, or another device in cnibench_device"}
		}
	}
	return nil
}

// note keeps what became of a profile's settings, for the environment.
func (b *Testbed) note(name string, e *end, r record) {
	if made := settingsOf(r); len(made) > 0 {
		b.made[name+" "+e.host.Name] = made
	}
}

// settingsOf are a record's settings of profiles in the words of results.
func settingsOf(r record) []result.Setting {
	var all []result.Setting
	for _, s := range r.Settings {
		if plainName(s.Name) == mtuName {
			continue
		}
		out := result.Setting{Name: answer.Line(plainName(s.Name)), Asked: answer.Line(s.Asked), Reason: answer.Line(s.Reason)}
		if s.Before != nil {
			out.Before = answer.Line(*s.Before)
		}
		if s.Value != nil {
			out.Value = answer.Line(*s.Value)
		}
		all = append(all, out)
	}
	return all
}

// plainName takes kind and device off the module's name of a setting, as
// records of all testbeds call it alike: "net.ipv4.tcp_sack", "offload gro".
func plainName(name string) string {
	words := strings.Fields(name)
	switch {
	case len(words) == 0:
		return ""
	case len(words) == 2 && words[0] == "sysctl":
		return words[1]
	case len(words) == 3:
		return words[0] + " " + words[2]
	case len(words) == 2 && words[0] == "file":
		return words[1]
	}
	return words[0]
}
