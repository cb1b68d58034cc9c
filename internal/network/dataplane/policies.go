package dataplane

import (
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/network"
)

// A campaign can put policies before the one that allows the lab's traffic
// (Node.Policies). Each selects every pod and allows what that one allows, but for peers
// that do not exist: traffic passes through all of them and matches none.

// OtherPolicy is the name of policy i, from 1. It sorts before the one that
// allows, as Felix orders policies by their names.
func OtherPolicy(i int) string { return fmt.Sprintf("default.a%04d", i) }

// OtherSet is the set of the peers of policy i.
func OtherSet(i int) string { return fmt.Sprintf("cnb-peers-%04d", i) }

// OtherPeer is the one peer of policy i, of the range for benchmarks (RFC 2544)
// that no node is in.
func OtherPeer(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 19, byte(i >> 8), byte(i)}) }

// OtherSets are the sets of the first policies.
func OtherSets(policies int) []IPSet {
	var sets []IPSet
	for i := 1; i <= policies; i++ {
		sets = append(sets, IPSet{Name: OtherSet(i), Kind: "hash:net", Members: []netip.Prefix{network.Single(OtherPeer(i))}})
	}
	return sets
}
