/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The ways out of Cilium's programs that both families take: into a pod, into the
 * tunnel. */
#pragma once

#include "cilium_places.h"
#include "counters.h"

/* into_pod is redirect_ep: redirect_peer is for what comes in at a device. What the node
 * sends goes out, and so does what a pod sends by a netkit, whose program runs on the pod's
 * side: it has no device that it came in by. */
static __always_inline int into_pod(struct __sk_buff *skb, struct ethhdr *eth, struct endpoint *ep, bool from_host)
{
	__builtin_memcpy(eth->h_source, ep->node_mac, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, ep->mac, ETH_ALEN);
	if (from_host || !skb->ingress_ifindex) {
		count(COUNT_TO_VETH);
		return bpf_redirect(ep->ifindex, 0);
	}
	count(COUNT_TO_PEER);
	return bpf_redirect_peer(ep->ifindex, 0);
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
