//go:build ignore
/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * A model of the way that packets take through Cilium v1.18.5 with eBPF host
 * routing, kube-proxy replaced and IPv4: which lookups and which redirects, in
 * which order. Written for cnibench; see docs/datapaths.md for what is left out.
 *
 *   cnb_from_container   cil_from_container   bpf_lxc.c      ingress of lxc…
 *   cnb_from_netdev      cil_from_netdev      bpf_host.c     ingress of eth0
 *   cnb_from_overlay     cil_from_overlay     bpf_overlay.c  ingress of cilium_vxlan
 *   cnb_from_host        cil_from_host        bpf_host.c     egress of cilium_host
 */
#include "common.h"
#include "ndp.h"

/* Set for each program that is loaded; the verifier removes the branches that
 * they rule out, as Cilium's own configuration does. */
volatile const __be32 endpoint_address;	/* of the pod that the program is for */
volatile const struct in6_addr endpoint_address6;
volatile const __u32 endpoint_id;
volatile const __u32 endpoint_identity;
volatile const __u32 netdev_ifindex;	/* eth0 */
volatile const __u32 tunnel_ifindex;	/* cilium_vxlan; 0: native routing */
volatile const bool with_policy;	/* connection tracking and policy */
volatile const bool with_ipv6;		/* without policy alone */

/* Identities that Cilium reserves. */
#define IDENTITY_HOST 1
#define IDENTITY_WORLD 2

#define ENDPOINT_HOST 1 /* an address of the node itself */

struct endpoint {
	__u32 ifindex;		/* the host's side of the veth */
	__u32 id;
	__u32 identity;
	__u32 flags;
	__u8 mac[ETH_ALEN];	/* the pod's */
	__u8 node_mac[ETH_ALEN];/* the host's side's */
};

/* cilium_lxc: what is on this node. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __be32);
	__type(value, struct endpoint);
} cnb_endpoints SEC(".maps");

struct remote {
	__u32 identity;
	__be32 tunnel;	/* the node's address; 0: not by tunnel */
};

/* The same for IPv6; Cilium has one map for both. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct in6_addr);
	__type(value, struct endpoint);
} cnb_endpoints6 SEC(".maps");

/* cilium_ipcache: who has an address, and behind which node. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct prefix);
	__type(value, struct remote);
} cnb_ipcache SEC(".maps");

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

static __always_inline struct endpoint *endpoint_of(__be32 address)
{
	return bpf_map_lookup_elem(&cnb_endpoints, &address);
}

static __always_inline struct remote *remote_of(__be32 address)
{
	struct prefix key = { .prefixlen = 32, .address = address };

	return bpf_map_lookup_elem(&cnb_ipcache, &key);
}

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
 * connection's opener is held against the policy, replies are not:
 * handle_ipv4_from_lxc and ipv4_policy in bpf_lxc.c. always: what comes from
 * the node itself is admitted. */
static __always_inline bool admit(struct __sk_buff *skb, struct iphdr *ip, __u32 endpoint, __u32 peer, __u8 side,
				  bool always)
{
	struct ports p = l4_ports(skb, ip);
	struct ct_entry fresh = {};
	struct ct_key key;
	enum ct_state state = ct_lookup(&key, ip, p, side);

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

static __always_inline int into_pod(struct ethhdr *eth, struct endpoint *ep, bool from_host)
{
	__builtin_memcpy(eth->h_source, ep->node_mac, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, ep->mac, ETH_ALEN);
	if (from_host) { /* redirect_peer is for what comes in, not for what goes out */
		count(COUNT_TO_VETH);
		return bpf_redirect(ep->ifindex, 0);
	}
	count(COUNT_TO_PEER);
	return bpf_redirect_peer(ep->ifindex, 0);
}

/* deliver is ipv4_local_delivery: one hop less, the pod's Ethernet addresses,
 * and the ingress policy of the pod. */
static __always_inline int deliver(struct __sk_buff *skb, struct iphdr *ip, struct endpoint *ep, __u32 from,
				   bool from_host)
{
	if (with_policy && !admit(skb, ip, ep->id, from, INGRESS, from_host))
		return drop(COUNT_DROP_DENIED);
	if (!decrease_ttl(ip))
		return drop(COUNT_DROP_OTHER);
	return into_pod((void *)ip - ETH_HLEN, ep, from_host);
}

/* deliver6 is ipv6_local_delivery. */
static __always_inline int deliver6(struct ipv6hdr *ip, struct endpoint *ep, bool from_host)
{
	if (ip->hop_limit <= 1)
		return drop(COUNT_DROP_OTHER);
	ip->hop_limit--;
	return into_pod((void *)ip - ETH_HLEN, ep, from_host);
}

/* encap is encap_and_redirect: the sender's identity is the tunnel's VNI. */
static __always_inline int encap(struct __sk_buff *skb, __be32 node, __u32 identity)
{
	struct bpf_tunnel_key key = {
		.tunnel_id = identity, .remote_ipv4 = bpf_ntohl(node), .tunnel_ttl = 64,
	};

	if (bpf_skb_set_tunnel_key(skb, &key, sizeof(key), BPF_F_ZERO_CSUM_TX))
		return drop(COUNT_DROP_OTHER);
	count(COUNT_TO_TUNNEL);
	return bpf_redirect(tunnel_ifindex, 0);
}

struct arp_ipv4 {
	struct ethhdr eth;
	__be16 hardware, protocol;
	__u8 hardware_size, protocol_size;
	__be16 operation;
	__u8 sender_mac[ETH_ALEN];
	__be32 sender;
	__u8 target_mac[ETH_ALEN];
	__be32 target;
} __attribute__((packed));

/* answer_arp is tail_handle_arp: the pod's every question is answered with the
 * host's side of its veth. What the pod itself answers goes to the node. */
static __always_inline int answer_arp(struct __sk_buff *skb)
{
	struct arp_ipv4 *arp = at(skb, sizeof(*arp));
	struct endpoint *ep;
	__be32 target;

	if (!arp)
		return drop(COUNT_DROP_OTHER);
	if (arp->operation != bpf_htons(1 /* request */))
		return TC_ACT_OK;
	ep = endpoint_of(endpoint_address);
	if (!ep)
		return drop(COUNT_DROP_OTHER);
	target = arp->target;
	__builtin_memcpy(arp->eth.h_dest, arp->sender_mac, ETH_ALEN);
	__builtin_memcpy(arp->eth.h_source, ep->node_mac, ETH_ALEN);
	arp->operation = bpf_htons(2 /* reply */);
	__builtin_memcpy(arp->target_mac, arp->sender_mac, ETH_ALEN);
	__builtin_memcpy(arp->sender_mac, ep->node_mac, ETH_ALEN);
	arp->target = arp->sender;
	arp->sender = target;
	count(COUNT_ARP);
	return bpf_redirect(skb->ifindex, 0);
}

static __always_inline int to_remote(struct __sk_buff *skb, struct iphdr *ip)
{
	struct remote *r = NULL;

	if (with_policy || tunnel_ifindex)
		r = remote_of(ip->daddr);
	if (with_policy && !admit(skb, ip, endpoint_id, r ? r->identity : IDENTITY_WORLD, EGRESS, false))
		return drop(COUNT_DROP_DENIED);
	if (tunnel_ifindex && r && r->tunnel)
		return encap(skb, r->tunnel, endpoint_identity);
	if (!decrease_ttl(ip))
		return drop(COUNT_DROP_OTHER);
	/* One device alone: no bpf_fib_lookup (ENABLE_SKIP_FIB). */
	count(COUNT_TO_NEIGH);
	return bpf_redirect_neigh(netdev_ifindex, NULL, 0, 0);
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
		return deliver6(ip, ep, false);
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
	return deliver6(ip, ep, false);
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
		return deliver6(ip, ep, true);
	if (tunnel_ifindex)
		r = remote_of6(&ip->daddr);
	if (r && r->tunnel)
		return encap(skb, r->tunnel, IDENTITY_HOST);
	return drop(COUNT_DROP_OTHER);
}

SEC("tc")
int cnb_from_container(struct __sk_buff *skb)
{
	struct endpoint *ep;
	struct iphdr *ip;

	if (with_ipv6 && skb->protocol == bpf_htons(ETH_P_IPV6))
		return from_container6(skb);
	if (skb->protocol == bpf_htons(ETH_P_ARP))
		return answer_arp(skb);
	if (skb->protocol != bpf_htons(ETH_P_IP) || !(ip = ipv4(skb)))
		return drop(COUNT_DROP_OTHER);
	count(COUNT_FROM_POD);
	if (ip->saddr != endpoint_address)
		return drop(COUNT_DROP_SPOOFED);
	ep = endpoint_of(ip->daddr);
	if (!ep)
		return to_remote(skb, ip);
	if (with_policy && !admit(skb, ip, endpoint_id, ep->identity, EGRESS, false))
		return drop(COUNT_DROP_DENIED);
	if (ep->flags & ENDPOINT_HOST) {
		count(COUNT_TO_STACK);
		return TC_ACT_OK;
	}
	return deliver(skb, ip, ep, endpoint_identity, false);
}

SEC("tc")
int cnb_from_netdev(struct __sk_buff *skb)
{
	struct remote *r = NULL;
	struct endpoint *ep;
	struct iphdr *ip;

	if (with_ipv6 && skb->protocol == bpf_htons(ETH_P_IPV6))
		return to_pod6(skb, COUNT_FROM_WIRE);
	if (skb->protocol != bpf_htons(ETH_P_IP) || !(ip = ipv4(skb)))
		return TC_ACT_OK;
	count(COUNT_FROM_WIRE);
	ep = endpoint_of(ip->daddr);
	if (!ep || ep->flags & ENDPOINT_HOST) {
		count(COUNT_TO_STACK);
		return TC_ACT_OK;
	}
	if (with_policy)
		r = remote_of(ip->saddr);
	return deliver(skb, ip, ep, r ? r->identity : IDENTITY_WORLD, false);
}

SEC("tc")
int cnb_from_overlay(struct __sk_buff *skb)
{
	struct bpf_tunnel_key key = {};
	struct endpoint *ep;
	struct iphdr *ip;

	if (with_ipv6 && skb->protocol == bpf_htons(ETH_P_IPV6)) {
		bpf_skb_change_type(skb, PACKET_HOST);
		return to_pod6(skb, COUNT_FROM_TUNNEL);
	}
	if (skb->protocol != bpf_htons(ETH_P_IP) || !(ip = ipv4(skb)) ||
	    bpf_skb_get_tunnel_key(skb, &key, sizeof(key), 0))
		return drop(COUNT_DROP_OTHER);
	count(COUNT_FROM_TUNNEL);
	/* The inner Ethernet header is for the sender's node. */
	bpf_skb_change_type(skb, PACKET_HOST);
	ep = endpoint_of(ip->daddr);
	if (!ep || ep->flags & ENDPOINT_HOST) {
		count(COUNT_TO_STACK);
		return TC_ACT_OK;
	}
	return deliver(skb, ip, ep, key.tunnel_id, false);
}

SEC("tc")
int cnb_from_host(struct __sk_buff *skb)
{
	struct remote *r = NULL;
	struct endpoint *ep;
	struct iphdr *ip;

	if (with_ipv6 && skb->protocol == bpf_htons(ETH_P_IPV6))
		return from_host6(skb);
	if (skb->protocol != bpf_htons(ETH_P_IP) || !(ip = ipv4(skb)))
		return drop(COUNT_DROP_OTHER);
	count(COUNT_FROM_HOST);
	ep = endpoint_of(ip->daddr);
	if (ep && !(ep->flags & ENDPOINT_HOST))
		return deliver(skb, ip, ep, IDENTITY_HOST, true);
	if (tunnel_ifindex)
		r = remote_of(ip->daddr);
	if (r && r->tunnel)
		return encap(skb, r->tunnel, IDENTITY_HOST);
	return drop(COUNT_DROP_OTHER);
}
