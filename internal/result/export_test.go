package result

import "github.com/cnibench/cnibench/internal/fault"

// CreateOn and ResumeOn are Create and Resume on a disk whose every step goes to before
// first, which may fail it.
func CreateOn(path string, campaign []byte, plan any, before func(fault.Step) error) (*Dir, error) {
	return create(path, campaign, plan, watched(before))
}

func ResumeOn(path string, before func(fault.Step) error) (*Dir, []Sample, Cut, error) {
	return resume(path, watched(before))
}

// WriteFileOn is WriteFile on such a disk.
func WriteFileOn(path string, data []byte, before func(fault.Step) error) error {
	return watched(before).writeFile(path, data)
}

func watched(before func(fault.Step) error) disk {
	return disk{forgets: true, before: func(s step) error {
		return before(fault.Step{Kind: s.kind, Path: s.path, To: s.to, At: s.at, Data: s.data})
	}}
}
