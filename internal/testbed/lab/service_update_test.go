package lab

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
)

// updateCell changes one of 20 services of a proxy.
func updateCell(name, proxy string) result.Cell {
	c := serviceCells(name, proxy, 20)[0]
	c.Workload, c.MessageBytes, c.Streams = result.ServiceUpdateName, 64, 1
	return c
}

// TestServiceUpdate: each proxy changes a service, new connections reach the
// endpoint that it has then, and the service has its first one again afterwards.
func TestServiceUpdate(t *testing.T) {
	eachProxy(t, func(t *testing.T, p network.ServiceProxy) {
		name := "bridge"
		if p.Family != "" {
			name = familyOf(p)[0]
		}
		buildServices(t, name, p.Name, 1, 1, 1) // or skips
		cell := updateCell(name, p.Name)
		after := cell
		after.Workload = "tcp_crr"
		k := &kept{}
		dir := stateDir(t)
		leavesNothing(t, dir, func() string {
			l := New(options(newRunner(t), dir))
			_, err := bench.Run(t.Context(), bench.Options{
				Sampling: campaign.Sampling{Seconds: 0.3, WarmupSeconds: 0.05, Retries: 1}, Testbed: l, Store: k, Observer: unseen{},
				Plan: plan.Plan{Schema: plan.Schema, Seed: 3, Cells: []result.Cell{cell, after}, MinBlocks: 2, MaxBlocks: 2, SampleSeconds: 0.3, WarmupSeconds: 0.05},
			})
			if err != nil {
				t.Error(err)
			}
			return l.ID()
		})
		changed := 0
		for _, s := range k.records {
			if s.Status != result.StatusOK {
				t.Logf("%s: %s: %s", s.Cell.Workload, s.Status, s.Reason) // it is measured again
				continue
			}
			first := s.Metrics["first_packet_p50_seconds"]
			if first <= 0 || first >= s.Metrics["latency_p50_seconds"] {
				t.Errorf("%s: the first packet was answered after %v s, the request after %v s", s.Cell.Workload, first, s.Metrics["latency_p50_seconds"])
			}
			if s.Cell.Workload != result.ServiceUpdateName {
				continue
			}
			changed++
			mean, most := s.Metrics["service_update_mean_seconds"], s.Metrics["service_update_max_seconds"]
			if mean <= 0 || most < mean || s.Metrics["service_programmed_mean_seconds"] <= 0 || s.Metrics["service_updates"] < 2 {
				t.Errorf("the sample has %v", s.Metrics)
			}
			t.Logf("%s: %v changes, %v s", p.Name, s.Metrics["service_updates"], mean)
		}
		if changed < 2 {
			t.Errorf("%d samples changed the service, want 2", changed)
		}
	})
}

// TestServiceUpdateNeedsAService: cells that have no service to change, or whose client does
// not ask for it on its own node, are unsupported with the reason.
func TestServiceUpdateNeedsAService(t *testing.T) {
	l := New(options(newRunner(t), t.TempDir()))
	service := updateCell("bridge", "iptables")
	pod, node := service, service
	pod.Path, pod.ServiceProxy, pod.Services = result.PathPodToPod, "", 0
	node.Path = result.PathPodToNodePort
	_, unsupported := l.planner.specs([]result.Cell{pod, node})
	for c, want := range map[*result.Cell]string{
		&pod: "service_update needs a path to a service", &node: "of a path to a cluster-ip",
	} {
		if got := unsupported[*c]; !strings.Contains(got, want) {
			t.Errorf("%s by %s: %q, want %q", c.Path, c.ServiceProxy, got, want)
		}
	}
}
