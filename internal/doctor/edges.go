package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/probe"
)

// edges reads the probes that need no counter, and says how long that takes: the
// first edge's time is lost to each window.
func (o Options) edges() []Check {
	var checks []Check
	for _, k := range probe.Kinds() {
		if k.Open == nil || k.Exclusive {
			continue // machine and counters say what these need
		}
		c := Check{Area: counterArea, Name: "probe " + k.Name, Status: OK, NeededFor: k.Short}
		took, err := o.FirstEdge(k.Name)
		c.Detail = fmt.Sprintf("read in %v, which each window loses", took.Round(time.Microsecond))
		if err != nil {
			c.Status, c.Detail = Missing, strings.ReplaceAll(err.Error(), "\n", "; ")
			c.Cure = "run it where the whole machine's /proc is seen; in a container: --pid=host"
		}
		checks = append(checks, c)
	}
	return checks
}

// firstEdge reads a probe at both edges and gives how long the first took.
func firstEdge(roots probe.Roots, name string) (time.Duration, error) {
	others := slices.DeleteFunc(probe.Names(), func(n string) bool { return n == name })
	list := probe.List(roots, others)
	if len(list) != 1 {
		return 0, fmt.Errorf("no end reads a probe %q", name)
	}
	p := list[0]
	begin := time.Now()
	err := p.Start()
	took := time.Since(begin)
	if err != nil {
		return took, err
	}
	values, err := p.Stop()
	if err == nil && len(values) == 0 {
		err = errors.New("nothing was read")
	}
	return took, err
}
