/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* How cnibench's tc programs read packets and change them. */
#pragma once

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* The verifier lets only GPL programs call some helpers; of the two licences
 * of this source that is the one in force inside the kernel. */
char __license[] SEC("license") = "GPL";

/* The key of maps by longest prefix; prefixlen is in bits. */
struct prefix {
	__u32 prefixlen;
	__be32 address;
};

/* at gives the packet from its Ethernet header on, need bytes of which may be
 * read; they are made linear where they are not. */
static __always_inline void *at(struct __sk_buff *skb, __u32 need)
{
	void *data = (void *)(long)skb->data;

	if (data + need <= (void *)(long)skb->data_end)
		return data;
	if (bpf_skb_pull_data(skb, need))
		return NULL;
	data = (void *)(long)skb->data;
	if (data + need <= (void *)(long)skb->data_end)
		return data;
	return NULL;
}

static __always_inline struct iphdr *ipv4(struct __sk_buff *skb)
{
	void *data = at(skb, ETH_HLEN + sizeof(struct iphdr));

	return data ? data + ETH_HLEN : NULL;
}

/* decrease_ttl updates the checksum as RFC 1624 does. False: the packet has no
 * hop left. */
static __always_inline bool decrease_ttl(struct iphdr *ip)
{
	__u32 sum = bpf_ntohs(ip->check);

	if (ip->ttl <= 1)
		return false;
	ip->ttl--;
	sum += 0x100;
	ip->check = bpf_htons(sum + (sum >> 16));
	return true;
}

/* The ports of TCP and UDP; 0 where there are none, as in later fragments. */
struct ports {
	__be16 source, dest;
};

static __always_inline struct ports l4_ports(struct __sk_buff *skb, struct iphdr *ip)
{
	struct ports p = {};

	if ((ip->protocol == IPPROTO_TCP || ip->protocol == IPPROTO_UDP) &&
	    !(ip->frag_off & bpf_htons(0x1fff)))
		bpf_skb_load_bytes(skb, ETH_HLEN + ip->ihl * 4, &p, sizeof(p));
	return p;
}
