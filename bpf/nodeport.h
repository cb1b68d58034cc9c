/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the programs of NodePorts remember of connections, and count. */
#pragma once

#include <stddef.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include "fragments.h"
#include "packet.h"
#include "services.h"

volatile const __be32 node_address;
volatile const __u32 l3_offset; /* of the IP header at a device: 0 where it has no Ethernet */

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04

/* A connection as its client sees it, and as it arrives at the backend: Cilium's CT_SERVICE,
 * and CT_EGRESS with node_port. */
#define TO_SERVICE 1
#define TO_BACKEND 2

struct connection_key {
	__be32 source, dest;
	struct ports ports;
	__u8 protocol, kind, pad[2];
};

struct connection {
	__u64 expires;	/* jiffies */
	__u32 backend;	/* TO_SERVICE: its number */
	__u32 closing;	/* TO_SERVICE: the client said that it ends */
	__be32 address;	/* TO_BACKEND: what the client asked; in place of cilium_lb4_reverse_nat */
	__be16 port;
	__u16 pad;
	/* TO_BACKEND: packets whose checksums looked like that. */
	__u32 finished, unfinished, unused;
};

/* cilium_ct4_global and cilium_ct_any4_global in one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 131072);
	__type(key, struct connection_key);
	__type(value, struct connection);
} cnb_np_conns SEC(".maps");

/* Go reads the names by number: nodePortCounters. */
enum nodeport_counter {
	NODEPORT_FORWARD,	/* packets led to a backend */
	NODEPORT_REVERSE,	/* answers that got the service's address */
	NODEPORT_NEW,		/* connections first seen */
	NODEPORT_NONE,		/* packets to the node that no service is for */
	NODEPORT_UNFINISHED,	/* forwarded ones whose checksum the sender's kernel left unfinished */
	NODEPORT_COUNTERS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NODEPORT_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} cnb_np_count SEC(".maps");

static __always_inline void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&cnb_np_count, &what);

	if (n)
		(*n)++;
}

/* fold makes a checksum of a sum (RFC 1071), not complemented. */
static __always_inline __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)(sum + (sum >> 16));
}

/* touch sets the lifetimes of ct_update_timeout, as cilium_policy.h does; nothing here reads
 * them back. */
static __always_inline void touch(struct connection *c, __u8 protocol)
{
	c->expires = bpf_jiffies64() + (protocol == IPPROTO_TCP ? 8000000 : 60000);
}
