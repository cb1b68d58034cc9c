package network

import (
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/bpf"
	"github.com/cnibench/cnibench/internal/netns"
)

// A campaign can put policies before the one that allows the lab's traffic
// (Node.Policies). Each selects every pod and allows what that one allows, but
// for peers that are not there: so traffic is held against all of them in vain.

// otherPolicy is the name of policy i, from 1. It sorts before the one that
// allows, as Felix orders policies by their names.
func otherPolicy(i int) string { return fmt.Sprintf("default.a%04d", i) }

// otherSet is the set of the peers of policy i.
func otherSet(i int) string { return fmt.Sprintf("cnb-peers-%04d", i) }

// otherPeer is the one peer of policy i, of the range for benchmarks (RFC 2544)
// that no node is in.
func otherPeer(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 19, byte(i >> 8), byte(i)}) }

// otherSets are the sets of the first policies.
func otherSets(policies int) []ipset {
	var sets []ipset
	for i := 1; i <= policies; i++ {
		sets = append(sets, ipset{name: otherSet(i), kind: "hash:net", members: []netip.Prefix{single(otherPeer(i))}})
	}
	return sets
}

// otherIdentity is that of the peer of policy i, as Cilium would give it: of the
// range for addresses outside the cluster.
func otherIdentity(i int) uint32 { return 1<<24 + uint32(i) }

// ciliumOthers writes the entries of the other policies for the pods of one
// node.
func ciliumOthers(self Node, pods []Pod) error {
	if self.Policies == 0 {
		return nil
	}
	err := netns.Do(self.NS, func() error {
		maps, err := mapsAt(self.Device, ingress())
		if err != nil {
			return err
		}
		defer maps.close()
		endpoints, err := maps.need(bpf.CiliumMapCnbEndpoints)
		if err != nil {
			return err
		}
		policy, err := maps.need(bpf.CiliumMapCnbPolicy)
		if err != nil {
			return err
		}
		for _, p := range pods {
			if p.Node != self.Index {
				continue
			}
			var ep bpf.CiliumEndpoint
			if err := endpoints.Lookup(ebpfAddress(p.Address), &ep); err != nil {
				return fmt.Errorf("endpoint %s: %w", p.Address, err)
			}
			for i := 1; i <= self.Policies; i++ {
				for _, key := range ciliumAllow(ep.Id, otherIdentity(i)) {
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

// EBPFPolicies counts the entries of the policy map of a node of Cilium's.
// device is the node's on the link.
func EBPFPolicies(node netns.NS, device string) (int, error) {
	entries := 0
	err := netns.Do(node, func() error {
		maps, err := mapsAt(device, ingress())
		if err != nil {
			return err
		}
		defer maps.close()
		policy, err := maps.need(bpf.CiliumMapCnbPolicy)
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
