package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// DefaultProfile is the profile that changes nothing.
const DefaultProfile = result.DefaultProfile

// Machine changes settings of the whole machine, as a profile asks for, and
// puts them back.
type Machine interface {
	// Use gives the machine a profile in place of the one before; the same again
	// changes nothing.
	Use(ctx context.Context, p profile.Profile) ([]result.Setting, error)
	// Made is what became of each profile that was used.
	Made() map[string][]result.Setting
	// Close puts everything back.
	Close(ctx context.Context) error
}

// checkProfile says why a lab cannot have a profile.
func (p *planner) checkProfile(name string) error {
	found, err := profile.Find(name)
	if err != nil {
		return err
	}
	if found.Tuned == "" {
		return nil
	}
	if !p.machine {
		return fmt.Errorf("profile %s is carried out by tuned, which changes the whole machine: allow it with %s", name, profile.AllowFlag)
	}
	if _, err := exec.LookPath("tuned"); err != nil {
		return fmt.Errorf("profile %s is carried out by tuned, which is not installed: apt-get install --no-install-recommends tuned", name)
	}
	return nil
}

// useProfile gives the machine what is its own of a cluster's profile, where a
// Machine was handed in, and the cluster's namespaces what tuned gave the
// machine's and they have for themselves.
func (l *Lab) useProfile(ctx context.Context, c *cluster) error {
	if l.options.Machine == nil {
		return nil
	}
	made, err := l.options.Machine.Use(ctx, c.profile)
	if err != nil {
		return err
	}
	c.machine = made
	if c.profile.Tuned == "" || c.tunedToo {
		return nil
	}
	own := profile.Profile{Name: c.profile.Name, Sysctls: map[string]string{}}
	for _, s := range made {
		if strings.HasPrefix(s.Name, "net.") && s.Reason == "" {
			own.Sysctls[s.Name] = s.Asked
		}
	}
	for _, s := range c.sites() {
		c.settings[s] = profile.Apply(c.ns(s), device, own, true)
	}
	c.tunedToo = true
	return nil
}

// sites are the cluster's nodes, each followed by its pods.
func (c *cluster) sites() []site {
	var all []site
	for n := range c.nodes {
		for p := 0; p <= len(c.pods[n]); p++ {
			all = append(all, site{n + 1, p})
		}
	}
	return all
}

// applyProfile gives nodes and pods the settings of the cluster's profile. One
// that does not take is no error: it is recorded with its reason. wide leaves
// what is the machine's to a Machine.
func (c *cluster) applyProfile(wide bool) {
	c.settings = map[site][]result.Setting{}
	for _, s := range c.sites() {
		c.settings[s] = profile.Apply(c.ns(s), device, c.profile, wide)
	}
}

// profiles are those of all clusters, each once.
func (l *Lab) profiles() []profile.Profile {
	var all []profile.Profile
	have := map[string]bool{}
	for _, c := range l.ordered {
		if !have[c.profile.Name] {
			have[c.profile.Name] = true
			all = append(all, c.profile)
		}
	}
	return all
}

// withSettings adds to a place what is in force there.
func (l *Lab) withSettings(p testbed.Place, c *cluster, s site) testbed.Place {
	p.Settings = profile.Read(c.ns(s), device, l.profiles())
	for _, m := range c.machine {
		if p.Settings[m.Name] == "" && m.Value != "" {
			p.Settings[m.Name] = m.Value
		}
	}
	p.Doubts = profile.Doubts(c.profile.Name, slices.Concat(c.settings[s], c.machine))
	return p
}
