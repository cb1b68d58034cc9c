package wire

import "github.com/cnibench/cnibench/internal/buildable"

// LinkNames is what package buildable keeps of Links.
func LinkNames() []buildable.Link {
	var all []buildable.Link
	for _, l := range Links() {
		all = append(all, buildable.Link{Name: l.Name, Summary: l.Summary, TotalBitsPerSecond: l.TotalBitsPerSecond()})
	}
	return all
}
