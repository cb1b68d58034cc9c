/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The ports of fragmented datagrams, after Cilium's lib/ipv4.h. */
#pragma once

#include "packet.h"

#define IP_MORE_FRAGMENTS 0x2000
#define IP_FRAGMENT_OFFSET 0x1fff

/* cilium_ipv4_frag_datagrams: the ports of a fragmented datagram, which its first
 * fragment alone has. */
struct frag_key {
	__be32 dest, source;
	__be16 id;
	__u8 protocol, pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct frag_key);
	__type(value, struct ports);
} cnb_frags SEC(".maps");

/* ports_of_datagram gives a later fragment the ports of its first, as
 * ipv4_handle_fragmentation does; p has those that the packet itself has. False: the first
 * was not seen, so nobody can say what the fragment belongs to. */
static __always_inline bool ports_of_datagram(struct iphdr *ip, struct ports *p)
{
	struct frag_key key = {
		.dest = ip->daddr, .source = ip->saddr, .id = ip->id, .protocol = ip->protocol,
	};
	struct ports *first;

	if (!(ip->frag_off & bpf_htons(IP_MORE_FRAGMENTS | IP_FRAGMENT_OFFSET)))
		return true;
	if (!(ip->frag_off & bpf_htons(IP_FRAGMENT_OFFSET))) {
		bpf_map_update_elem(&cnb_frags, &key, p, BPF_ANY);
		return true;
	}
	first = bpf_map_lookup_elem(&cnb_frags, &key);
	if (!first)
		return false;
	*p = *first;
	return true;
}
