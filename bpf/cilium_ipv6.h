/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Cilium's programs for IPv6: without connection tracking and policy. */
#pragma once

#include "cilium_ways.h"
#include "ndp.h"

/* cnb_endpoints and cnb_ipcache for IPv6; Cilium has one map for both families. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct in6_addr);
	__type(value, struct endpoint);
} cnb_endpoints6 SEC(".maps");

struct prefix6 {
	__u32 prefixlen;
	struct in6_addr address;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct prefix6);
	__type(value, struct remote);
} cnb_ipcache6 SEC(".maps");

static __always_inline struct endpoint *endpoint_of6(const struct in6_addr *address)
{
	struct in6_addr key = *address;

	return bpf_map_lookup_elem(&cnb_endpoints6, &key);
}

static __always_inline struct remote *remote_of6(const struct in6_addr *address)
{
	struct prefix6 key = { .prefixlen = 128, .address = *address };

	return bpf_map_lookup_elem(&cnb_ipcache6, &key);
}

/* deliver6 is ipv6_local_delivery. */
static __always_inline int deliver6(struct __sk_buff *skb, struct ipv6hdr *ip, struct endpoint *ep, bool from_host)
{
	if (ip->hop_limit <= 1)
		return drop(COUNT_DROP_OTHER);
	ip->hop_limit--;
	return into_pod(skb, (void *)ip - ETH_HLEN, ep, from_host);
}

static __always_inline int from_container6(struct __sk_buff *skb)
{
	struct in6_addr own = endpoint_address6;
	struct remote *r = NULL;
	struct endpoint *ep;
	struct ipv6hdr *ip;

	if (is_solicitation(skb)) {
		ep = endpoint_of6(&own);
		if (!ep || !answer_solicitation(skb, ep->node_mac))
			return drop(COUNT_DROP_OTHER);
		count(COUNT_ARP);
		return bpf_redirect(skb->ifindex, 0);
	}
	ip = ipv6(skb);
	if (!ip)
		return drop(COUNT_DROP_OTHER);
	count(COUNT_FROM_POD);
	if (!same6(&ip->saddr, &own))
		return drop(COUNT_DROP_SPOOFED);
	ep = endpoint_of6(&ip->daddr);
	if (ep && ep->flags & ENDPOINT_HOST) {
		count(COUNT_TO_STACK);
		return TC_ACT_OK;
	}
	if (ep)
		return deliver6(skb, ip, ep, false);
	if (tunnel_ifindex)
		r = remote_of6(&ip->daddr);
	if (r && r->tunnel)
		return encap(skb, r->tunnel, endpoint_identity);
	if (ip->hop_limit <= 1)
		return drop(COUNT_DROP_OTHER);
	ip->hop_limit--;
	count(COUNT_TO_NEIGH);
	return bpf_redirect_neigh(netdev_ifindex, NULL, 0, 0);
}

/* to_pod6 is for what comes in from the wire or out of the tunnel. */
static __always_inline int to_pod6(struct __sk_buff *skb, __u32 from)
{
	struct ipv6hdr *ip = ipv6(skb);
	struct endpoint *ep;

	if (!ip)
		return drop(COUNT_DROP_OTHER);
	count(from);
	ep = endpoint_of6(&ip->daddr);
	if (!ep || ep->flags & ENDPOINT_HOST) {
		count(COUNT_TO_STACK);
		return TC_ACT_OK;
	}
	return deliver6(skb, ip, ep, false);
}

static __always_inline int from_host6(struct __sk_buff *skb)
{
	struct ipv6hdr *ip = ipv6(skb);
	struct remote *r = NULL;
	struct endpoint *ep;

	if (!ip)
		return drop(COUNT_DROP_OTHER);
	count(COUNT_FROM_HOST);
	ep = endpoint_of6(&ip->daddr);
	if (ep && !(ep->flags & ENDPOINT_HOST))
		return deliver6(skb, ip, ep, true);
	if (tunnel_ifindex)
		r = remote_of6(&ip->daddr);
	if (r && r->tunnel)
		return encap(skb, r->tunnel, IDENTITY_HOST);
	return drop(COUNT_DROP_OTHER);
}
