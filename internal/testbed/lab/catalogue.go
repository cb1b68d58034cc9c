package lab

import "github.com/cnibench/cnibench/internal/catalogue"

// Catalogue is what package catalogue keeps of Links.
func Catalogue() []catalogue.Link {
	var all []catalogue.Link
	for _, l := range Links() {
		all = append(all, catalogue.Link{Name: l.Name, Summary: l.Summary, TotalBitsPerSecond: l.TotalBitsPerSecond()})
	}
	return all
}
