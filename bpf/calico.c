//go:build ignore
/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * A model of the way that packets take through Calico's eBPF dataplane
 * (felix/bpf-gpl: tc.c, rpf.h, conntrack.h, fib_co_re.h), IPv4 without tunnels:
 * which lookups and which redirects, in which order. Written for cnibench; see
 * docs/datapaths.md for what is left out.
 *
 *   cnb_from_wep   ingress of cali…   packets that a workload endpoint sent
 *   cnb_to_wep     egress of cali…    packets for it that did not come by its peer
 *   cnb_from_hep   ingress of eth0    packets from the wire
 *   cnb_to_hep     egress of eth0     packets to the wire
 */
#include "counters.h"
#include "packet.h"

#define AF_INET 2
#define EINVAL 22
#define FIB_SKIP_NEIGH (1U << 2) /* BPF_FIB_LOOKUP_SKIP_NEIGH, Linux 6.3 */
#define MARK_SEEN 0x01000000	 /* CALI_SKB_MARK_SEEN: a program has approved it */

/* cali_v4_routes: what kind of place an address is. */
enum { ROUTE_LOCAL_WORKLOAD = 1, ROUTE_LOCAL_HOST = 2, ROUTE_REMOTE = 4 };

struct route {
	__u32 flags;
	__u32 ifindex; /* of a local workload's cali… */
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct prefix);
	__type(value, struct route);
} cnb_routes SEC(".maps");

/* A connection, seen from either end: a is the end with the smaller address,
 * or port where the addresses are alike. */
struct ct_key {
	__be32 a, b;
	__be16 port_a, port_b;
	__u8 protocol, pad[3];
};

/* One direction; ifindex is where its packets come in, 0: not seen yet. */
struct ct_leg {
	__u64 packets;
	__u32 ifindex;
	__u32 approved;
};

struct ct_entry {
	__u64 last_seen; /* ns */
	struct ct_leg from_a, from_b;
};

/* cali_v4_ct. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct ct_key);
	__type(value, struct ct_entry);
} cnb_ct SEC(".maps");

static __always_inline struct route *route_to(__be32 address)
{
	struct prefix key = { .prefixlen = 32, .address = address };

	return bpf_map_lookup_elem(&cnb_routes, &key);
}

/* track is calico_ct_lookup, and conntrack_create for what is new. It gives
 * the device behind which the other end is, once a packet of both directions
 * was seen and approved (CALI_CT_ESTABLISHED_BYPASS); 0 before. comes_in: the
 * packet came in by this device, so that replies can go out by it. */
static __always_inline __u32 track(struct __sk_buff *skb, struct iphdr *ip, bool comes_in)
{
	struct ports p = l4_ports(skb, ip);
	bool from_a = ip->saddr < ip->daddr || (ip->saddr == ip->daddr && p.source < p.dest);
	struct ct_key key = {
		.a = from_a ? ip->saddr : ip->daddr, .b = from_a ? ip->daddr : ip->saddr,
		.port_a = from_a ? p.source : p.dest, .port_b = from_a ? p.dest : p.source,
		.protocol = ip->protocol,
	};
	struct ct_entry *entry = bpf_map_lookup_elem(&cnb_ct, &key), fresh = {};
	struct ct_leg *mine, *other;

	if (!entry) {
		count(COUNT_CT_NEW);
		fresh.last_seen = bpf_ktime_get_ns();
		mine = from_a ? &fresh.from_a : &fresh.from_b;
		mine->packets = 1;
		mine->approved = 1;
		mine->ifindex = comes_in ? skb->ifindex : 0;
		bpf_map_update_elem(&cnb_ct, &key, &fresh, BPF_ANY);
		return 0;
	}
	count(COUNT_CT_FOUND);
	entry->last_seen = bpf_ktime_get_ns();
	mine = from_a ? &entry->from_a : &entry->from_b;
	other = from_a ? &entry->from_b : &entry->from_a;
	mine->packets++;
	mine->approved = 1;
	if (comes_in && mine->ifindex != skb->ifindex)
		mine->ifindex = skb->ifindex;
	return other->approved ? other->ifindex : 0;
}

/* forward is the rest of forward_or_drop: the kernel's routes say where the
 * packet goes, redirect_neigh takes it there. What the kernel's routes do not
 * forward is left to the stack. */
static __always_inline int forward(struct __sk_buff *skb, struct iphdr *ip)
{
	struct bpf_fib_lookup fib = {
		.family = AF_INET, .ifindex = skb->ifindex, .l4_protocol = ip->protocol,
		.ipv4_src = ip->saddr, .ipv4_dst = ip->daddr,
	};
	struct bpf_redir_neigh next = { .nh_family = AF_INET };
	long err = bpf_fib_lookup(skb, &fib, sizeof(fib), FIB_SKIP_NEIGH);

	if (err == -EINVAL)
		err = bpf_fib_lookup(skb, &fib, sizeof(fib), 0);
	if ((err != BPF_FIB_LKUP_RET_SUCCESS && err != BPF_FIB_LKUP_RET_NO_NEIGH) || !decrease_ttl(ip)) {
		count(COUNT_TO_STACK);
		return TC_ACT_OK;
	}
	next.ipv4_nh = fib.ipv4_dst;
	count(COUNT_TO_NEIGH);
	return bpf_redirect_neigh(fib.ifindex, &next, sizeof(next), 0);
}

static __always_inline int to_peer(__u32 ifindex)
{
	count(COUNT_TO_PEER);
	return bpf_redirect_peer(ifindex, 0);
}

SEC("tc")
int cnb_from_wep(struct __sk_buff *skb)
{
	struct route *r;
	struct iphdr *ip;
	__u32 behind;

	if (skb->protocol == bpf_htons(ETH_P_ARP))
		return TC_ACT_OK; /* the kernel's proxy ARP answers */
	if (skb->protocol != bpf_htons(ETH_P_IP) || !(ip = ipv4(skb)))
		return drop(COUNT_DROP_OTHER);
	count(COUNT_FROM_POD);
	r = route_to(ip->saddr); /* wep_rpf_check */
	if (!r || !(r->flags & ROUTE_LOCAL_WORKLOAD) || r->ifindex != skb->ifindex)
		return drop(COUNT_DROP_SPOOFED);
	behind = track(skb, ip, true);
	skb->mark |= MARK_SEEN;
	r = route_to(ip->daddr);
	if (r && r->flags & ROUTE_LOCAL_HOST) {
		count(COUNT_TO_STACK);
		return TC_ACT_OK;
	}
	if (behind && r && r->flags & ROUTE_LOCAL_WORKLOAD)
		return to_peer(behind);
	return forward(skb, ip);
}

SEC("tc")
int cnb_to_wep(struct __sk_buff *skb)
{
	struct iphdr *ip;

	if (skb->protocol != bpf_htons(ETH_P_IP) || !(ip = ipv4(skb)))
		return TC_ACT_OK;
	count(COUNT_TO_VETH);
	if (!(skb->mark & MARK_SEEN))
		track(skb, ip, false);
	return TC_ACT_OK;
}

SEC("tc")
int cnb_from_hep(struct __sk_buff *skb)
{
	struct route *r;
	struct iphdr *ip;
	__u32 behind;

	if (skb->protocol != bpf_htons(ETH_P_IP) || !(ip = ipv4(skb)))
		return TC_ACT_OK;
	count(COUNT_FROM_WIRE);
	behind = track(skb, ip, true);
	skb->mark |= MARK_SEEN;
	if (behind)
		return to_peer(behind);
	r = route_to(ip->daddr);
	if (r && r->flags & ROUTE_LOCAL_HOST) {
		count(COUNT_TO_STACK);
		return TC_ACT_OK;
	}
	return forward(skb, ip);
}

SEC("tc")
int cnb_to_hep(struct __sk_buff *skb)
{
	struct iphdr *ip;

	if (skb->mark & MARK_SEEN || skb->protocol != bpf_htons(ETH_P_IP) || !(ip = ipv4(skb)))
		return TC_ACT_OK;
	count(COUNT_FROM_HOST);
	track(skb, ip, false);
	return TC_ACT_OK;
}
