package paper

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// Untaken gathers which settings of each profile did not take effect, from the warnings of
// samples.
type Untaken map[string]map[string]bool

// Add takes a record.
func (u Untaken) Add(s *result.Sample) {
	for _, warning := range s.Warnings {
		text, ok := strings.CutPrefix(warning, "profile "+s.Cell.Profile+": ")
		if !ok {
			continue
		}
		if u[s.Cell.Profile] == nil {
			u[s.Cell.Profile] = map[string]bool{}
		}
		u[s.Cell.Profile][text] = true
	}
}

// List gives the settings of each profile, sorted.
func (u Untaken) List() map[string][]string {
	out := map[string][]string{}
	for profile, texts := range u {
		for text := range texts {
			out[profile] = append(out[profile], text)
		}
		slices.Sort(out[profile])
	}
	return out
}
