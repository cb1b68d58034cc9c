package workload

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// ServiceUpdate makes connections to a service without a pause, while the testbed changes the
// service's endpoint from one port of its pod to another and back.
type ServiceUpdate struct{ connections native }

// The marks of the servers at the two ports (traffic.Config.Mark). The service leads to the
// first one before the sample and after it.
const (
	FirstMark byte = 1 + iota
	OtherMark
)

// updatesWithin bounds the traffic of a sample, which ends when the changes are over.
const updatesWithin = 5 * time.Minute

// NewServiceUpdate is the workload.
func NewServiceUpdate() ServiceUpdate {
	return ServiceUpdate{native{
		spec: Spec{
			Name:                  result.ServiceUpdateName,
			Summary:               "a service's endpoint changed while connections are made to it: how long until a new connection reaches the new endpoint",
			Primary:               "service_update_mean_seconds",
			Factors:               []string{"message_bytes", "response_bytes", "streams"},
			SetsCongestionControl: true,
			DefaultCPUs:           result.CPUsSame,
			DefaultMessageBytes:   64,
		},
		test: traffic.TCPCRR,
		fix:  func(c *traffic.Config) { c.Mark, c.Window = FirstMark, updatesWithin },
	}}
}

// Spec describes the workload.
func (u ServiceUpdate) Spec() Spec { return u.connections.Spec() }

// Serve is the server at the first port.
func (u ServiceUpdate) Serve(p Params) (Program, error) {
	served, err := u.connections.Serve(p)
	served.Timeout = updatesWithin + nativePatience
	return served, err
}

// ServeOther is the server at the other port.
func (u ServiceUpdate) ServeOther(p Params) (Program, error) {
	served, err := u.Serve(p)
	if err == nil {
		served.Native.Mark = OtherMark
	}
	return served, err
}

// Drive is the client.
func (u ServiceUpdate) Drive(p Params, server netip.AddrPort) (Program, error) {
	drive, err := u.connections.Drive(p, server)
	drive.Timeout = updatesWithin + nativePatience
	return drive, err
}

// Parse reads what the connections were like. Updated adds what the changes were.
func (u ServiceUpdate) Parse(p Params, server, client Output) (Measurement, error) {
	return u.connections.Parse(p, server, client)
}

// Updated adds how long changes took to a measurement. The changes are in the order in which
// they were made, the first of them to the other port, and the client must have seen each of
// them, once: its clock is the one of the changes.
func Updated(m *Measurement, changes []result.ServiceChange, client Output) error {
	if client.Native == nil || len(changes) == 0 {
		return errors.New("the service was not changed")
	}
	seen := client.Native.Switches
	if len(seen) == 0 || seen[0].Mark != FirstMark {
		return errors.New("no connection reached the service's first endpoint before it was changed")
	}
	seen = seen[1:]
	if len(seen) != len(changes) {
		return fmt.Errorf("the service was changed %d times, and new connections reached another endpoint than before %d times", len(changes), len(seen))
	}
	var until, programmed, longest time.Duration
	for i, c := range changes {
		took := time.Duration(seen[i].At - c.Began)
		if want := [...]byte{OtherMark, FirstMark}[i%2]; seen[i].Mark != want || took <= 0 {
			return fmt.Errorf("change %d of the service: a connection reached endpoint %d %v after it began, and endpoint %d was expected later", i+1, seen[i].Mark, took, want)
		}
		until += took
		longest = max(longest, took)
		programmed += c.Took
	}
	n := float64(len(changes))
	m.Metrics["service_update_mean_seconds"] = until.Seconds() / n
	m.Metrics["service_update_max_seconds"] = longest.Seconds()
	m.Metrics["service_programmed_mean_seconds"] = programmed.Seconds() / n
	m.Metrics["service_updates"] = n
	return nil
}
