/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* IPv6 headers, and the answer to a neighbour solicitation (RFC 4861). */
#pragma once

#include "packet.h"

#include <stddef.h>
#include <linux/in6.h>
#include <linux/ipv6.h>

#define NDP_SOLICITATION 135
#define NDP_ADVERTISEMENT 136
#define NDP_SOURCE_ADDRESS 1
#define NDP_TARGET_ADDRESS 2
#define NDP_SOLICITED_OVERRIDE 0x60000000

struct ndp {
	__u8 type, code;
	__sum16 sum;
	__be32 flags;
	struct in6_addr target;
	__u8 option, option_length; /* in eights of bytes */
	__u8 mac[ETH_ALEN];
};

struct ndp_frame {
	struct ethhdr eth;
	struct ipv6hdr ip;
	struct ndp ndp;
} __attribute__((packed));

static __always_inline struct ipv6hdr *ipv6(struct __sk_buff *skb)
{
	void *data = at(skb, ETH_HLEN + sizeof(struct ipv6hdr));

	return data ? data + ETH_HLEN : NULL;
}

static __always_inline bool same6(const struct in6_addr *a, const struct in6_addr *b)
{
	return !((a->in6_u.u6_addr32[0] ^ b->in6_u.u6_addr32[0]) | (a->in6_u.u6_addr32[1] ^ b->in6_u.u6_addr32[1]) |
		 (a->in6_u.u6_addr32[2] ^ b->in6_u.u6_addr32[2]) | (a->in6_u.u6_addr32[3] ^ b->in6_u.u6_addr32[3]));
}

static __always_inline bool is_solicitation(struct __sk_buff *skb)
{
	__u8 next = 0, type = 0;

	bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, nexthdr), &next, sizeof(next));
	bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(struct ipv6hdr), &type, sizeof(type));
	return next == IPPROTO_ICMPV6 && type == NDP_SOLICITATION;
}

/* ndp_sum is the checksum of a message of that size with its pseudo header,
 * RFC 4443 2.3. */
static __always_inline __sum16 ndp_sum(const struct in6_addr *from, const struct in6_addr *to, const struct ndp *ndp)
{
	struct {
		struct in6_addr from, to;
		__be32 length, next;
	} pseudo = {
		.from = *from, .to = *to, .length = bpf_htonl(sizeof(*ndp)), .next = bpf_htonl(IPPROTO_ICMPV6),
	};
	__u32 sum = bpf_csum_diff(NULL, 0, (__be32 *)&pseudo, sizeof(pseudo), 0);

	sum = bpf_csum_diff(NULL, 0, (__be32 *)ndp, sizeof(*ndp), sum);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* answer_solicitation makes the advertisement of it: whoever was asked for is
 * at mac. A solicitation without its sender's address is for duplicates, and
 * gets no answer. */
static __always_inline bool answer_solicitation(struct __sk_buff *skb, const __u8 *mac)
{
	struct ndp_frame *f = at(skb, sizeof(*f));
	struct in6_addr from, to;
	struct ndp ndp = {
		.type = NDP_ADVERTISEMENT, .flags = bpf_htonl(NDP_SOLICITED_OVERRIDE), .option = NDP_TARGET_ADDRESS, .option_length = 1,
	};

	if (!f || f->ndp.option != NDP_SOURCE_ADDRESS || f->ndp.option_length != 1)
		return false;
	from = f->ndp.target;
	to = f->ip.saddr;
	ndp.target = from;
	__builtin_memcpy(ndp.mac, mac, ETH_ALEN);
	ndp.sum = ndp_sum(&from, &to, &ndp);
	__builtin_memcpy(f->eth.h_dest, f->eth.h_source, ETH_ALEN);
	__builtin_memcpy(f->eth.h_source, mac, ETH_ALEN);
	f->ip.saddr = from;
	f->ip.daddr = to;
	f->ip.hop_limit = 255;
	f->ip.payload_len = bpf_htons(sizeof(ndp));
	f->ndp = ndp;
	return true;
}
