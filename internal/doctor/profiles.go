package doctor

import (
	"fmt"
	"os"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
)

const profileArea = "profiles"

// tryProfile applies a profile in a namespace made for that.
func tryProfile(p profile.Profile) (settings []result.Setting, err error) {
	err = netns.Try("eth0", func(ns netns.NS) error {
		settings = profile.Apply(ns, "eth0", p, false)
		return nil
	})
	return settings, err
}

// profiles lists, for each profile, the settings that would not take effect in a lab here.
func (o Options) profiles() []Check {
	var checks []Check
	for _, p := range o.Profiles {
		checks = append(checks, o.profile(p))
	}
	return checks
}

func (o Options) profile(p profile.Profile) Check {
	c := Check{Area: profileArea, Name: p.Name, Status: OK, NeededFor: "profiles: [" + p.Name + "]"}
	if p.Tuned != "" {
		path, err := exec.LookPath("tuned")
		if err != nil {
			c.Status, c.Detail, c.Cure = Missing, "it is carried out by tuned, which is not in PATH", "apt-get install --no-install-recommends tuned"
			return c
		}
		c.Detail = path + "; it changes the whole machine, so a lab has it only with " + profile.AllowFlag
		if not := profile.KnobsMissing(os.DirFS("/"), p.Tuned); len(not) > 0 {
			c.Status = Limited
			c.Detail += "; a part of it does not take effect: " + strings.Join(not, "; ")
		}
		return c
	}
	settings, err := o.TryProfile(p)
	if err != nil {
		c.Status, c.Detail = Limited, "unknown: "+err.Error()
		return c
	}
	var not []string
	for _, s := range settings {
		if s.Reason != "" {
			not = append(not, s.Name+": "+s.Reason)
		}
	}
	c.Detail = p.Summary
	if len(not) > 0 {
		c.Status = Limited
		c.Detail = fmt.Sprintf("%d of %d settings do not take in a lab: %s", len(not), len(settings), strings.Join(not, "; "))
	}
	return c
}
