//go:build ignore
/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * A model of the way that packets take through Cilium v1.18.5 with eBPF host
 * routing, kube-proxy replaced: which lookups and which redirects, in
 * which order. Written for cnibench; see docs/datapaths.md for what is left out.
 *
 *   cnb_from_container   cil_from_container   bpf_lxc.c      ingress of lxc…; with netkit,
 *                                                            what the pod's side sends
 *   cnb_from_netdev      cil_from_netdev      bpf_host.c     ingress of eth0
 *   cnb_from_overlay     cil_from_overlay     bpf_overlay.c  ingress of cilium_vxlan
 *   cnb_from_host        cil_from_host        bpf_host.c     egress of cilium_host
 */
#include "cilium_ipv6.h"
#include "cilium_policy.h"

/* deliver is ipv4_local_delivery: one hop less, the pod's Ethernet addresses,
 * and the ingress policy of the pod. */
static __always_inline int deliver(struct __sk_buff *skb, struct iphdr *ip, struct endpoint *ep, __u32 from,
				   bool from_host)
{
	if (with_policy && !admit(skb, ip, ep->id, from, INGRESS, from_host))
		return drop(COUNT_DROP_DENIED);
	if (!decrease_ttl(ip))
		return drop(COUNT_DROP_OTHER);
	return into_pod(skb, (void *)ip - ETH_HLEN, ep, from_host);
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
