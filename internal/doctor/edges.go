package doctor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/probe"
)

// edges reads the probes that need no counter, and says how long that takes: the
// first edge's time is lost to each window.
func (o Options) edges() []Check {
	var checks []Check
	for _, one := range []struct{ name, neededFor string }{
		{probe.CPUName, "CPU time of the machine by mode"},
		{probe.ProcessName, "CPU time of the two ends alone"},
	} {
		c := Check{Area: counterArea, Name: "probe " + one.name, Status: OK, NeededFor: one.neededFor}
		took, err := o.FirstEdge(one.name)
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
	var p probe.Probe
	switch name {
	case probe.CPUName:
		p = probe.NewCPU(roots)
	case probe.ProcessName:
		p = probe.NewProcess(roots)
	default:
		return 0, fmt.Errorf("no probe %q with edges alone", name)
	}
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
