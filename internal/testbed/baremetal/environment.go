package baremetal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
)

// Environment describes both hosts as they are without any profile.
func (b *Testbed) Environment(ctx context.Context) (result.Environment, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	env := result.Environment{
		Schema: result.Schema, Testbed: campaign.Hosts, Places: map[string]result.PlaceFacts{},
		Networks: map[string]result.NetworkFacts{result.HostNetwork: {Kind: result.KindReal}},
	}
	if !b.deployed {
		return env, nil // no cell can be measured: nothing was copied
	}
	return env, b.lost(b.describe(ctx, &env))
}

// describe adds what is known of both hosts.
func (b *Testbed) describe(ctx context.Context, env *result.Environment) error {
	if err := b.reconnect(ctx); err != nil {
		return err
	}
	// Settings are compared from begin to end, so they are read under the same.
	if err := b.tune(ctx, tuning{profile: result.DefaultProfile}); err != nil {
		return err
	}
	client := b.ends[0].facts
	env.Host = result.Host{Kernel: client.kernel, OS: client.os, CPUModel: client.cpuModel, CPUs: client.cpus, MemoryBytes: client.memoryBytes}
	errs := []error{b.withPods(ctx, env)}
	for _, e := range b.ends {
		f, err := b.placeFacts(ctx, e)
		errs = append(errs, err)
		env.Places[e.name()] = f
	}
	for _, e := range b.ends {
		for key, settings := range b.made {
			name, host, _ := strings.Cut(key, " ")
			if host == e.host.Name {
				if env.Profiles == nil {
					env.Profiles = map[string][]result.Setting{}
				}
				env.Profiles[name+" on "+e.name()] = settings
			}
		}
	}
	return errors.Join(errs...)
}

func (b *Testbed) placeFacts(ctx context.Context, e *end) (result.PlaceFacts, error) {
	if err := b.startAgent(ctx, e); err != nil {
		return result.PlaceFacts{}, err
	}
	f, err := e.agent.Facts(ctx)
	if err != nil {
		return result.PlaceFacts{}, fmt.Errorf("%s: facts: %w", e.name(), err)
	}
	return result.PlaceFacts{Node: e.host.Name, Kernel: f.Kernel, MTUs: f.MTUs, Sysctls: f.Sysctls, Offloads: f.Offloads}, nil
}
