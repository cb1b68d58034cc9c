package bench

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// watchNodes reads the nodes under both ends before the traffic begins. The func
// reads them again after it, and records what was read.
func (r *run) watchNodes(ctx context.Context, s *result.Sample, ends testbed.Ends) func() {
	reader, ok := r.Testbed.(testbed.NodeReader)
	if !ok {
		for _, name := range probe.Names(probe.IsOfNodes) {
			if !slices.Contains(r.WithoutProbes, name) {
				r.missing("probe " + name + ": this testbed does not read its nodes: measure in the lab")
			}
		}
		return func() {}
	}
	again := reader.WatchNodes(ctx, s.Cell, r.WithoutProbes)
	return func() {
		got := again(ctx)
		s.Warnings = append(s.Warnings, got.Doubts...)
		for _, why := range got.Absent {
			r.missing(why)
		}
		for end, values := range map[string]map[string]float64{result.ClientNode: got.Client, result.ServerNode: got.Server} {
			if len(values) == 0 {
				continue
			}
			if s.Probes == nil {
				s.Probes, s.Machines = map[string]map[string]float64{}, map[string]string{}
			}
			if s.Probes[end] == nil {
				s.Probes[end] = map[string]float64{}
			}
			maps.Copy(s.Probes[end], values)
			place := ends.Client
			if end == result.ServerNode {
				place = ends.Server
			}
			s.Machines[end] = machine(place)
		}
	}
}

// watchWay begins to verify a sample's encryption, and the way that its traffic takes where
// the testbed can. The func ends both: its error says what was not as the cell claims.
func (r *run) watchWay(ctx context.Context, s *result.Sample) func() error {
	encrypted := r.watchEncryption(ctx, s)
	verifier, ok := r.Testbed.(testbed.PathVerifier)
	if !ok {
		return encrypted
	}
	again := verifier.WatchPath(ctx, s.Cell)
	return func() error { return errors.Join(encrypted(), again(ctx)) }
}

// watchEncryption reads the counters of what encrypts a sample's packets between nodes. The
// func reads them again after the traffic, and records what was encrypted; its error says
// why not all of it was. It never fails a cell without encryption.
func (r *run) watchEncryption(ctx context.Context, s *result.Sample) func() error {
	if s.Cell.Encryption == "" {
		return func() error { return nil }
	}
	reader, ok := r.Testbed.(testbed.EncryptionReader)
	if !ok {
		return func() error {
			return errors.New("this testbed cannot verify that packets are encrypted: measure in the lab")
		}
	}
	again := reader.WatchEncryption(ctx, s.Cell)
	return func() (err error) {
		s.Encryption, err = again()
		return err
	}
}

// missing notes, once a campaign, what cannot be measured here.
func (r *run) missing(why string) {
	r.saying.Lock()
	defer r.saying.Unlock()
	if !slices.Contains(r.absent, why) {
		r.absent = append(r.absent, why)
		r.Observer.Say("not measured here: %s", why)
	}
}
