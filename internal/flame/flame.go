// Package flame adds up the kernel's stacks of a campaign and writes them in
// the forms that other programs draw: folded lines for flame graphs, and pprof.
package flame

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	pprof "github.com/google/pprof/profile"

	"github.com/cnibench/cnibench/internal/result"
)

// Profile is CPU time by network, traffic and stack.
type Profile struct{ of map[source]map[string]int64 }

// source is where stacks were taken.
type source struct{ network, path, placement, link, traffic string }

// New makes an empty one.
func New() *Profile { return &Profile{of: map[source]map[string]int64{}} }

// Add adds a stack that was taken during a sample of a cell.
func (p *Profile) Add(cell result.Cell, s result.Stack) {
	from := source{cell.Network, cell.Path, cell.Placement, fmt.Sprintf("%s, MTU %d", cell.Link, cell.MTU), cell.Traffic()}
	if p.of[from] == nil {
		p.of[from] = map[string]int64{}
	}
	p.of[from][strings.Join(s.Frames, ";")] += s.Microseconds
}

// Empty reports that no stack was added.
func (p *Profile) Empty() bool { return len(p.of) == 0 }

// sources are those of the profile, in a fixed order.
func (p *Profile) sources() []source {
	return slices.SortedFunc(maps.Keys(p.of), func(a, b source) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// WriteFolded writes a line for each stack, the outermost function first, below
// its network and traffic: "bridge;tcp_rr 64 B;do_syscall_64;… 1234", with the
// CPU time in microseconds.
func (p *Profile) WriteFolded(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, from := range p.sources() {
		for _, stack := range slices.Sorted(maps.Keys(p.of[from])) {
			fmt.Fprintf(out, "%s;%s;%s %d\n", from.network, from.where(), stack, p.of[from][stack])
		}
	}
	return out.Flush()
}

func (s source) where() string {
	return fmt.Sprintf("%s (%s %s, %s)", s.traffic, s.path, s.placement, s.link)
}

// WritePprof writes a profile of CPU time for `go tool pprof`, compressed, with
// network, traffic, path and link as tags of each sample: -tagfocus=network=bridge.
func (p *Profile) WritePprof(w io.Writer) error {
	b := &builder{
		out: &pprof.Profile{
			SampleType:        []*pprof.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
			DefaultSampleType: "cpu", PeriodType: &pprof.ValueType{Type: "cpu", Unit: "nanoseconds"},
		},
		functions: map[string]*pprof.Location{},
	}
	for _, from := range p.sources() {
		labels := map[string][]string{
			"network": {from.network}, "traffic": {from.traffic}, "path": {from.path + " " + from.placement}, "link": {from.link},
		}
		for _, stack := range slices.Sorted(maps.Keys(p.of[from])) {
			b.add(strings.Split(stack, ";"), 1000*p.of[from][stack], labels)
		}
	}
	if err := b.out.CheckValid(); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	return b.out.Write(w)
}

// builder makes a pprof profile, each function once.
type builder struct {
	out       *pprof.Profile
	functions map[string]*pprof.Location
}

func (b *builder) add(frames []string, nanoseconds int64, labels map[string][]string) {
	s := &pprof.Sample{Value: []int64{nanoseconds}, Label: labels}
	for _, name := range slices.Backward(frames) { // pprof wants the innermost first
		s.Location = append(s.Location, b.location(name))
	}
	b.out.Sample = append(b.out.Sample, s)
}

func (b *builder) location(name string) *pprof.Location {
	if l, ok := b.functions[name]; ok {
		return l
	}
	id := uint64(len(b.functions) + 1)
	f := &pprof.Function{ID: id, Name: name, SystemName: name}
	l := &pprof.Location{ID: id, Line: []pprof.Line{{Function: f}}}
	b.out.Function, b.out.Location = append(b.out.Function, f), append(b.out.Location, l)
	b.functions[name] = l
	return l
}
