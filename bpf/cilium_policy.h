/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Cilium's connection tracking and policy, of IPv4 (lib/conntrack.h, lib/policy.h). */
#pragma once

#include "cilium_places.h"
#include "counters.h"
#include "fragments.h"

#define EGRESS 0
#define INGRESS 1

/* A connection as its opener sees it, and on which side of it the endpoint is:
 * EGRESS, it opened it; INGRESS, it was opened to it. */
struct ct_key {
	__be32 source, dest;
	struct ports ports;
	__u8 protocol, side, pad[2];
};

struct ct_entry {
	__u64 expires;	/* jiffies */
	__u64 packets;
};

/* cilium_ct4_global and cilium_ct_any4_global in one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct ct_key);
	__type(value, struct ct_entry);
} cnb_ct SEC(".maps");

/* cilium_policy_v2, of all endpoints. Protocol and port may be left open:
 * they are the key's end. */
struct policy_key {
	__u32 prefixlen;
	__u32 endpoint;
	__u32 identity;	/* 0: any */
	__u8 direction, protocol;
	__be16 port;
};
#define POLICY_FULL (8 * (sizeof(struct policy_key) - sizeof(__u32)))

struct policy_entry {
	__u32 deny;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct policy_key);
	__type(value, struct policy_entry);
} cnb_policy SEC(".maps");

/* The lifetimes of ct_update_timeout in lib/conntrack.h: established TCP 8,000
 * s, others 60 s. The kernel's jiffies may be anything from 100 to 1000 a
 * second; nothing here reads them back. */
static __always_inline void ct_touch(struct ct_entry *entry, __u8 protocol)
{
	entry->expires = bpf_jiffies64() + (protocol == IPPROTO_TCP ? 8000000 : 60000);
	__sync_fetch_and_add(&entry->packets, 1);
}

enum ct_state { CT_NEW, CT_ESTABLISHED, CT_REPLY };

/* ct_lookup looks for the reply's entry first, as ct_lookup4 does. */
static __always_inline enum ct_state ct_lookup(struct ct_key *key, struct iphdr *ip, struct ports p, __u8 side)
{
	struct ct_key reverse = {
		.source = ip->daddr, .dest = ip->saddr,
		.ports = { .source = p.dest, .dest = p.source },
		.protocol = ip->protocol, .side = !side,
	};
	struct ct_entry *entry;

	*key = (struct ct_key){
		.source = ip->saddr, .dest = ip->daddr, .ports = p, .protocol = ip->protocol, .side = side,
	};
	entry = bpf_map_lookup_elem(&cnb_ct, &reverse);
	if (entry) {
		ct_touch(entry, ip->protocol);
		count(COUNT_CT_FOUND);
		return CT_REPLY;
	}
	entry = bpf_map_lookup_elem(&cnb_ct, key);
	if (entry) {
		ct_touch(entry, ip->protocol);
		count(COUNT_CT_FOUND);
		return CT_ESTABLISHED;
	}
	return CT_NEW;
}

/* policy_allows asks for the peer's identity, then for any, as
 * policy_can_access in lib/policy.h does. What denies wins; what nothing
 * allows is denied. */
static __always_inline bool policy_allows(__u32 endpoint, __u32 identity, __u8 direction, __u8 protocol, __be16 port)
{
	struct policy_key key = {
		.prefixlen = POLICY_FULL, .endpoint = endpoint, .identity = identity,
		.direction = direction, .protocol = protocol, .port = port,
	};
	struct policy_entry *peer = bpf_map_lookup_elem(&cnb_policy, &key), *any;

	key.identity = 0;
	any = bpf_map_lookup_elem(&cnb_policy, &key);
	if ((peer && peer->deny) || (any && any->deny))
		return false;
	return peer || any;
}

/* admit is one endpoint's connection tracking and policy. Every packet of the
 * connection's opener is checked by the policy, replies are not:
 * handle_ipv4_from_lxc and ipv4_policy in bpf_lxc.c. always: what comes from
 * the node itself is admitted. */
static __always_inline bool admit(struct __sk_buff *skb, struct iphdr *ip, __u32 endpoint, __u32 peer, __u8 side,
				  bool always)
{
	struct ct_entry fresh = {};
	enum ct_state state;
	struct ct_key key;
	struct ports p;

	p = l4_ports(skb, ip);
	if (!ports_of_datagram(ip, &p))
		return false;
	state = ct_lookup(&key, ip, p, side);
	if (state == CT_REPLY)
		return true;
	if (!always && !policy_allows(endpoint, peer, side, ip->protocol, p.dest))
		return false;
	if (state == CT_NEW) {
		count(COUNT_CT_NEW);
		ct_touch(&fresh, ip->protocol);
		bpf_map_update_elem(&cnb_ct, &key, &fresh, BPF_ANY);
	}
	return true;
}
