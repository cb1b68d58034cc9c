package cilium

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/bpf"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// ciliumPolicy gives the entries of one endpoint: what PolicyPorts says, both
// ways, for nodes and pods.
func ciliumPolicy(endpoint uint32) []bpf.CiliumPolicyKey {
	return allow(endpoint, identityHost, identityRemoteNode, identityPods)
}

// allow gives the entries that let an endpoint and some identities speak
// to each other. A range of ports is a few prefixes.
func allow(endpoint uint32, identities ...uint32) []bpf.CiliumPolicyKey {
	const fixed = 8 * (4 + 4 + 1 + 1) // endpoint, identity, direction, protocol
	var keys []bpf.CiliumPolicyKey
	first, last := network.PolicyPorts()
	for port, bits := uint32(first), 0; port <= uint32(last); port += 1 << (16 - bits) {
		for bits = 0; port%(1<<(16-bits)) != 0 || port+1<<(16-bits)-1 > uint32(last); {
			bits++
		}
		for _, identity := range identities {
			for direction := range uint8(2) {
				for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
					keys = append(keys, bpf.CiliumPolicyKey{
						Prefixlen: uint32(fixed + bits), Endpoint: endpoint, Identity: identity,
						Direction: direction, Protocol: protocol, Port: uint16(port>>8 | port<<8),
					})
				}
			}
		}
	}
	return keys
}

// otherIdentity is that of the peer of policy i, as Cilium would give it: of the
// range for addresses outside the cluster.
func otherIdentity(i int) uint32 { return 1<<24 + uint32(i) }

// others writes the entries of the other policies for the pods of one
// node.
func others(self network.Node, pods []network.Pod) error {
	if self.Policies == 0 {
		return nil
	}
	err := netns.Do(self.NS, func() error {
		maps, err := dataplane.MapsAt(self.Device, dataplane.Ingress())
		if err != nil {
			return err
		}
		defer maps.Close()
		endpoints, err := maps.Need(bpf.CiliumMapCnbEndpoints)
		if err != nil {
			return err
		}
		policy, err := maps.Need(bpf.CiliumMapCnbPolicy)
		if err != nil {
			return err
		}
		for _, p := range pods {
			if p.Node != self.Index {
				continue
			}
			var ep bpf.CiliumEndpoint
			if err := endpoints.Lookup(dataplane.EBPFAddress(p.Address), &ep); err != nil {
				return fmt.Errorf("endpoint %s: %w", p.Address, err)
			}
			for i := 1; i <= self.Policies; i++ {
				for _, key := range allow(ep.Id, otherIdentity(i)) {
					if err := policy.Put(key, bpf.CiliumPolicyEntry{}); err != nil {
						return fmt.Errorf("policy %d of %d: %w", i, self.Policies, err)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", self.Name, err)
	}
	return nil
}

// PolicyEntries counts the entries of the policy map of a node of Cilium's.
// device is the node's on the link.
func PolicyEntries(node netns.NS, device string) (int, error) {
	entries := 0
	err := netns.Do(node, func() error {
		maps, err := dataplane.MapsAt(device, dataplane.Ingress())
		if err != nil {
			return err
		}
		defer maps.Close()
		policy, err := maps.Need(bpf.CiliumMapCnbPolicy)
		if err != nil {
			return err
		}
		var key bpf.CiliumPolicyKey
		var entry bpf.CiliumPolicyEntry
		all := policy.Iterate()
		for all.Next(&key, &entry) {
			entries++
		}
		return all.Err()
	})
	return entries, err
}
