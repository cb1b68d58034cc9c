package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/workload"
)

// addPatience bounds a sample of pod_setup, with podPatience more for each pod. A cluster that was
// frozen while another was measured may need some of it until its nodes are ready.
const (
	addPatience = 30 * time.Second
	podPatience = time.Second
)

// addPods measures a sample of pod_setup, which the testbed itself runs.
func (r *run) addPods(ctx context.Context, s *result.Sample) error {
	adder, ok := r.Testbed.(testbed.PodAdder)
	if !ok {
		return errors.New("this testbed cannot add pods while a campaign runs: measure pod_setup in the lab or on a cluster")
	}
	bound := addPatience + time.Duration(max(1, s.Cell.Pods))*podPatience
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("no end after %v", bound))
	defer cancel()
	set, err := adder.AddPods(ctx, s.Cell)
	if err != nil {
		return err
	}
	m, err := workload.PodsAdded(set)
	if err != nil {
		return err
	}
	s.MeasuredSeconds, s.Metrics, s.PluginSeconds = &m.MeasuredSeconds, m.Metrics, m.PluginSeconds
	s.Warnings = m.Warnings
	return nil
}
