package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/answer"
)

// factsWithin bounds the wait for an agent's facts, which it reads from memory.
const factsWithin = 5 * time.Second

// Facts asks an agent for the facts of its place and checks them: it may run in a pod or
// on a host that somebody else controls. The error says which fact cannot be one.
func (c *Client) Facts(ctx context.Context) (Facts, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, factsWithin, fmt.Errorf("no answer within %v", factsWithin))
	defer cancel()
	var f Facts
	if err := c.Call(ctx, MethodFacts, nil, &f); err != nil {
		return Facts{}, err
	}
	return f.checked()
}

// checked returns facts whose names and values are of the kind that they must be, and
// whose text is safe to print.
func (f Facts) checked() (Facts, error) {
	if !answer.Kernel(f.Kernel) {
		return Facts{}, fmt.Errorf("it answers with a kernel release that no kernel has: %q", answer.Line(f.Kernel))
	}
	for _, n := range []int{len(f.MTUs), len(f.Sysctls), len(f.Offloads), len(f.Addresses), len(f.Drivers), len(f.Routes)} {
		// A node has a device for each of its pods, and dozens of offloads for each.
		if n > 64*answer.MaxEntries {
			return Facts{}, fmt.Errorf("it answers with %d entries of one list", n)
		}
	}
	mtus := map[string]int{}
	for device, mtu := range f.MTUs {
		if !answer.MTU(mtu) {
			return Facts{}, fmt.Errorf("it answers with an MTU of %d for %s", mtu, answer.Line(device))
		}
		mtus[answer.Line(device)] = mtu
	}
	for a := range f.Addresses {
		if !answer.Address(a) {
			return Facts{}, fmt.Errorf("it answers with the address %q", answer.Line(a))
		}
	}
	f.Hostname, f.MTUs = answer.Line(f.Hostname), mtus
	var err error
	if f.Sysctls, err = answer.Values(f.Sysctls); err != nil {
		return Facts{}, err
	}
	f.Offloads, f.Addresses, f.Drivers = lines(f.Offloads), lines(f.Addresses), lines(f.Drivers)
	f.Routes = slices.Clone(f.Routes)
	for i, r := range f.Routes {
		f.Routes[i] = answer.Line(r)
	}
	return f, nil
}

func lines(of map[string]string) map[string]string {
	if of == nil {
		return nil
	}
	out := map[string]string{}
	for k, v := range maps.All(of) {
		out[answer.Line(k)] = answer.Line(v)
	}
	return out
}
