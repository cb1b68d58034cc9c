package campaign

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// JobProfile is what a parallel job does, as a person writes it for cnibench recommend.
type JobProfile struct {
	Name string `json:"name"`
	// Ranks is how many it has, RanksPerNode how many of them are on one node.
	Ranks        int `json:"ranks"`
	RanksPerNode int `json:"ranks_per_node"`
	// ComputeSeconds is what it computes in addition to its operations.
	ComputeSeconds float64        `json:"compute_seconds"`
	Operations     []JobOperation `json:"operations"`
}

// JobOperation is one kind of operation of a job.
type JobOperation struct {
	Operation string `json:"operation"`
	Algorithm string `json:"algorithm"`
	// MessageBytes is as in a campaign; 0 for a barrier.
	MessageBytes int `json:"message_bytes"`
	// Count is how often the job does it.
	Count int `json:"count"`
}

// maxCount bounds how often an operation occurs.
const maxCount = 1_000_000_000

func jobKeys() []key {
	return []key{
		{name: "name", required: true, kind: "name", pattern: campaignName, patternDoc: "at most 63 letters, digits, dots, dashes and underscores, a letter or digit first",
			example: "cfd", doc: "The job's name in answers."},
		{name: "ranks", required: true, kind: "number of ranks", bounds: factorBounds("ranks"), example: "8",
			doc: "The number of ranks of each operation."},
		{name: "ranks_per_node", def: "1", kind: "number of ranks", bounds: factorBounds("ranks_per_node"), example: "2",
			doc: "How many ranks are on one node."},
		{name: "compute_seconds", def: "0", kind: "time", bounds: bounds{Min: 0, Max: week}, example: "30",
			doc: "The time that the job computes in addition to its operations, seconds. No network changes it."},
		{name: "operations", required: true, kind: "operation", example: "[{operation: all_to_all, message_bytes: 16384, count: 1000}]",
			doc: "The job's mix of operations."},
	}
}

func operationKeys(known Known) []key {
	names, algorithms := []string{}, []string{}
	for _, s := range known.Workloads {
		if !isOperation(s) {
			continue
		}
		names = append(names, s.Name)
		for _, a := range s.Algorithms {
			if !slices.Contains(algorithms, a) {
				algorithms = append(algorithms, a)
			}
		}
	}
	return []key{
		{name: "operation", required: true, kind: "operation", names: names, example: "all_to_all", doc: "One of the native workloads with many ends."},
		{name: "algorithm", kind: "algorithm", names: algorithms, example: "ring",
			defDoc: "the operation's first", doc: "How it is done."},
		{name: "message_bytes", kind: "message size", bounds: factorBounds("message_bytes"), example: "16384",
			defDoc: "none", doc: "The size of a message, bytes, as in a campaign; a barrier has none."},
		{name: "count", required: true, kind: "count", bounds: bounds{Min: 1, Max: maxCount}, example: "1000", doc: "How often the job does it."},
	}
}

// factorBounds are those of a factor of campaigns.
func factorBounds(name string) bounds {
	f, _ := result.FindFactor(name)
	return f.Key().Bounds
}

// isOperation tells whether a workload is an operation of a job: its time is measured.
func isOperation(s workload.Spec) bool { return s.ManyEnds && len(s.Needs) == 0 }

// LoadJobProfile reads and parses the profile of a job.
func LoadJobProfile(path string, known Known) (JobProfile, error) {
	data, err := readFile(path)
	if err != nil {
		return JobProfile{}, fmt.Errorf("profile: %w", err)
	}
	return ParseJobProfile(path, data, known)
}

// ParseJobProfile reads the profile of a job under the rules of campaign files: unknown
// keys and values are errors with their place. The error joins an *Error for each thing
// that is wrong.
func ParseJobProfile(path string, data []byte, known Known) (JobProfile, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	root, errs := readYAML(data)
	var p JobProfile
	if root != nil {
		d := &decoder{known: known, root: root, failed: map[string]bool{}}
		d.decode(root, reflect.ValueOf(&p).Elem(), key{kind: "profile"}, nil)
		d.checkJob(&p)
		errs = append(errs, d.errs...)
	}
	if len(errs) > 0 {
		return JobProfile{}, located(path, data, errs)
	}
	return p, nil
}

// checkJob fills in what the file leaves open, and refuses operations that no job can
// have.
func (d *decoder) checkJob(p *JobProfile) {
	if d.good(keyPath{"ranks"}) && d.good(keyPath{"ranks_per_node"}) && p.RanksPerNode > p.Ranks {
		d.fail(keyPath{"ranks_per_node"}, "", "%d ranks per node, and the job has %d", p.RanksPerNode, p.Ranks)
	}
	for i := range p.Operations {
		op, where := &p.Operations[i], keyPath{"operations", i}
		spec, ok := d.known.workload(op.Operation)
		if !ok || !d.good(where) {
			continue
		}
		switch takesSize := slices.Contains(spec.Factors, "message_bytes"); {
		case takesSize && op.MessageBytes == 0:
			d.fail(where, "for example message_bytes: 16384", "missing key %q", "message_bytes")
			continue
		case !takesSize && op.MessageBytes > 0:
			d.fail(where.with("message_bytes"), "leave it out", "%s has no messages", op.Operation)
			continue
		}
		if op.Algorithm == "" && len(spec.Algorithms) > 0 {
			op.Algorithm = spec.Algorithms[0]
		}
		if !d.good(keyPath{"ranks"}) {
			continue
		}
		if err := spec.CheckRanks("", op.Algorithm, p.Ranks, op.MessageBytes); err != nil {
			at := where
			if len(spec.Algorithms) > 0 && spec.CheckRanks("", spec.Algorithms[0], p.Ranks, op.MessageBytes) == nil {
				at = where.with("algorithm")
			}
			d.fail(at, "", "%s", err)
		}
	}
}
