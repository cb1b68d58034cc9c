package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/workload"
)

// patience is what a sample may take beyond its own length before it is failed.
const patience = 10 * time.Second

// try is one attempt at a sample.
type try struct {
	sample result.Sample
	// err is why it cannot be measured; it is the record's reason.
	err  error
	work workload.Workload
	ends testbed.Ends
	// without are probes that are left out in addition to those of the run.
	without []string
	// served is what the serving end gave.
	served workload.Output
	// verified verifies the sample's encryption, and the way that its traffic took, once that
	// has ended.
	verified func() error
}

// machines are those under its ends, each once.
func (t *try) machines() []string {
	if t.ends.Client.Agent == nil || t.ends.Server.Agent == nil {
		return nil
	}
	return slices.Compact([]string{machine(t.ends.Client), machine(t.ends.Server)})
}

// begin makes the ends of a sample ready, and reads their machines while nothing is
// measured. It never gives an error: a sample that could not be measured is a failed
// record with the reason.
func (r *run) begin(ctx context.Context, slot plan.Slot) *try {
	t := &try{sample: result.Sample{
		Schema: result.Schema, ID: slot.ID, Block: slot.Block, Attempt: 1 + r.slots[slot.ID].attempts, Cell: slot.Cell,
		Started: time.Now().UTC(), RequestedSeconds: r.Sampling.Seconds,
	}}
	if t.work, t.err = workload.Find(slot.Cell.Workload); t.err != nil || t.addsPods() || t.manyEnds() {
		return t
	}
	if t.ends, t.err = r.Testbed.Ends(ctx, slot.Cell); t.err == nil {
		r.idle(ctx, slot.Block, t.ends)
	}
	return t
}

// prepare is begin for a sliced sample: no probe is read during its slices.
func (r *run) prepare(ctx context.Context, slot plan.Slot) *try {
	t := &try{sample: result.Sample{
		Schema: result.Schema, ID: slot.ID, Block: slot.Block, Attempt: 1 + r.slots[slot.ID].attempts, Cell: slot.Cell, Started: time.Now().UTC(),
	}}
	if t.work, t.err = workload.Find(slot.Cell.Workload); t.err == nil {
		t.ends, t.err = r.Testbed.Ends(ctx, slot.Cell)
	}
	return t
}

func (t *try) addsPods() bool { return t.work.Spec().Name == workload.PodSetupName }

func (t *try) manyEnds() bool { return t.work.Spec().ManyEnds }

// finish measures what was begun. Several may be measured at the same time.
func (r *run) finish(ctx context.Context, t *try) {
	s, err := &t.sample, t.err
	if err == nil {
		t.verified = r.watchWay(ctx, s)
	}
	switch {
	case err != nil:
	case t.addsPods():
		err = r.addPods(ctx, s)
	case t.manyEnds():
		err = r.manyEnds(ctx, s, t.work)
	default:
		if work, changes := t.work.(workload.ServiceUpdate); changes {
			err = r.updateService(ctx, t, work)
		} else {
			err = r.measure(ctx, t)
		}
	}
	if err == nil {
		err = t.verified()
	}
	if err == nil {
		s.Status = result.StatusOK
		err = s.Validate()
	}
	if err != nil {
		failed(s, err)
	}
}

// failed makes a sample a failed record.
func failed(s *result.Sample, err error) {
	s.Status, s.Reason = result.StatusFailed, oneLine(err)
	s.Metrics, s.Histogram, s.Series, s.MeasuredSeconds, s.Probes, s.Machines = nil, nil, nil, nil, nil, nil
	s.Settings, s.Conditions, s.Slices, s.Explaining, s.Job, s.Encryption = nil, nil, nil, nil, nil, nil
}

func (r *run) measure(ctx context.Context, t *try) error {
	s, w, ends := &t.sample, t.work, t.ends
	p := workload.Params{
		Cell: s.Cell, Warmup: r.Sampling.Warmup(), Window: r.Sampling.Window(),
		Token: agent.NewToken(), SharedClock: ends.SharedClock,
	}
	readAgain := r.watchNodes(ctx, s, ends)
	server, client, err := r.traffic(ctx, p, t)
	if rawErr := r.saveRaw(s, server, client); rawErr != nil {
		err = errors.Join(err, rawErr)
	}
	if err != nil {
		return err
	}
	m, err := w.Parse(p, server, client)
	if err != nil {
		return errors.Join(err, strangersOf(server))
	}
	s.MeasuredSeconds, s.Metrics, s.Histogram, s.Series = &m.MeasuredSeconds, m.Metrics, m.Histogram, m.Series
	s.Tools, s.Warnings = m.Tools, m.Warnings
	if len(server.Argv) > 0 { // the native engine's are in m
		s.Warnings = slices.Concat(s.Warnings, server.Doubts, client.Doubts)
	}
	profileOf(s, ends)
	r.probes(s, ends, client, server)
	readAgain()
	conditionsOf(s, client, server)
	mtuOf(s, ends)
	return nil
}

// mtuOf records the MTU of both ends' devices.
func mtuOf(s *result.Sample, ends testbed.Ends) {
	if ends.Client.MTU > 0 && ends.Server.MTU > 0 {
		s.Metrics["client_mtu_bytes"] = float64(ends.Client.MTU)
		s.Metrics["server_mtu_bytes"] = float64(ends.Server.MTU)
	}
}

// profileOf records the settings that were in force at both ends, and which of
// those asked for were not.
func profileOf(s *result.Sample, ends testbed.Ends) {
	for end, p := range map[string]testbed.Place{result.ClientNode: ends.Client, result.ServerNode: ends.Server} {
		if len(p.Settings) > 0 {
			if s.Settings == nil {
				s.Settings = map[string]map[string]string{}
			}
			s.Settings[end] = p.Settings
		}
	}
	for _, d := range slices.Concat(ends.Client.Doubts, ends.Server.Doubts) {
		if !slices.Contains(s.Warnings, d) {
			s.Warnings = append(s.Warnings, d)
		}
	}
}

// traffic runs both halves. Whatever happens, neither end has anything of it
// left running afterwards.
func (r *run) traffic(ctx context.Context, p workload.Params, t *try) (server, client workload.Output, err error) {
	w, ends := t.work, t.ends
	serve, err := w.Serve(p)
	if err != nil {
		return server, client, err
	}
	bound := p.Warmup + p.Window + patience
	if serve.Native == nil { // a tool takes time to start, and has a timeout of its own
		bound += max(serve.Timeout, 0)
		serve.Placement = p.Cell.CPUs
	}
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("no end after %v", bound))
	defer cancel()
	defer func() {
		if err != nil {
			r.cancelEnds(ctx, ends)
		}
	}()
	defer r.watchAlive(ctx, ends.Client, ends.Server)()
	serve.WithoutProbes = slices.Concat(t.without, r.WithoutProbes)
	var session agent.ServeResult
	if err := ends.Server.Agent.Call(ctx, agent.MethodServe, agent.ServeParams{Program: serve, Port: ends.ServerPort, Address: ends.ServerAddress.String()}, &session); err != nil {
		return server, client, fmt.Errorf("server at %s: %w", ends.Server.Name, err)
	}
	target := netip.AddrPortFrom(ends.ServerAddress, cmp.Or(ends.TargetPort, session.Port))
	drive, err := w.Drive(p, target)
	if err != nil {
		return server, client, err
	}
	if drive.Native == nil {
		drive.Placement = p.Cell.CPUs
	}
	drive.WithoutProbes = slices.Concat(t.without, r.withoutTwice(ends))
	driving, stop := context.WithCancelCause(ctx)
	watched := watchServer(ctx, driving, stop, ends.Server, session.Session)
	driveErr := ends.Client.Agent.Call(driving, agent.MethodDrive, agent.DriveParams{Program: drive, Server: target.String()}, &client)
	stop(nil)
	if driveErr != nil {
		driveErr = fmt.Errorf("client at %s: %w", ends.Client.Name, driveErr)
	}
	finishErr := ends.Server.Agent.Call(ctx, agent.MethodFinish, agent.FinishParams{Session: session.Session, Peer: peerOf(t.sample.Cell, ends, client)}, &server)
	if finishErr != nil {
		finishErr = fmt.Errorf("server at %s: %w", ends.Server.Name, finishErr)
	}
	<-watched
	return server, client, errors.Join(driveErr, finishErr)
}

// peerOf is the address that the server of a tool sees its client at; "" where it may be
// translated on the way. Pods reach pods, and nodes reach nodes, without that (Kubernetes'
// network model), unless a proxy is between them.
func peerOf(cell result.Cell, ends testbed.Ends, client workload.Output) string {
	if ends.Proxied {
		return ""
	}
	if cell.Path == result.PathPodToPod || cell.Path == result.PathHostToHost {
		return client.Source
	}
	return ""
}

// strangersOf adds to the reason of a failed sample who else used the server of its tool.
func strangersOf(server workload.Output) error {
	for _, d := range server.Doubts {
		if strings.HasPrefix(d, agent.StrangersDoubt) {
			return errors.New(d)
		}
	}
	return nil
}

// failureGrace is how long a client may go on whose server has failed: its own error is
// the better reason.
const failureGrace = time.Second

// watchServer stops the client some time after its server has failed: tools
// may wait for ever. The channel is closed when nobody watches any more, which
// is after the server's session is over.
func watchServer(ctx, driving context.Context, stop context.CancelCauseFunc, at testbed.Place, session string) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		var w agent.WaitResult
		err := at.Agent.Call(ctx, agent.MethodWait, agent.WaitParams{Session: session}, &w)
		if err == nil && w.Failed != "" {
			err = errors.New(w.Failed)
		}
		if err == nil {
			return
		}
		select {
		case <-driving.Done(): // it is through
		case <-time.After(failureGrace):
			stop(fmt.Errorf("stopped, as the server at %s had failed: %w", at.Name, err))
		}
	}()
	return over
}

func (r *run) cancelEnds(ctx context.Context, ends testbed.Ends) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, p := range []testbed.Place{ends.Client, ends.Server} {
		// An agent that does not answer is dead or replaced by the next Ends.
		_ = p.Agent.Call(ctx, agent.MethodCancel, agent.CancelParams{}, nil)
	}
}

// rawName is the folder of a sample below raw/.
func rawName(s *result.Sample) string {
	if s.Attempt > 1 {
		return fmt.Sprintf("%s-attempt%d", s.ID, s.Attempt)
	}
	return s.ID
}

func (r *run) saveRaw(s *result.Sample, server, client workload.Output) error {
	name := rawName(s)
	var errs []error
	for _, e := range []struct {
		end string
		out workload.Output
	}{{"client", client}, {"server", server}} {
		if e.out.Stacks != "" {
			errs = append(errs, r.Store.SaveStacks(name, e.end, e.out.Stacks))
			s.Raw = result.RawDir + "/" + name
		}
		if len(e.out.Argv) > 0 {
			errs = append(errs, r.Store.SaveRaw(name, e.end, e.out.Argv, e.out.Stdout, e.out.Stderr))
			s.Raw = result.RawDir + "/" + name
		}
	}
	return errors.Join(errs...)
}

// oneLine makes an error the reason of a record.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
