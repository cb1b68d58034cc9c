/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What cnibench's tc programs did with packets, counted on each processor. */
#pragma once

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

/* What was done with packets. Go reads the names by number: counterNames. */
enum counter {
	COUNT_FROM_POD,		/* packets that a pod sent */
	COUNT_FROM_WIRE,	/* packets that came in at the node's device */
	COUNT_FROM_TUNNEL,	/* packets that came out of the tunnel device */
	COUNT_FROM_HOST,	/* packets of the node itself */
	COUNT_TO_PEER,		/* redirect_peer: straight into a pod */
	COUNT_TO_VETH,		/* redirected to the host's side of a pod's veth or netkit */
	COUNT_TO_NEIGH,		/* redirect_neigh: straight out of the node's device */
	COUNT_TO_TUNNEL,	/* with a tunnel key to the tunnel device */
	COUNT_TO_STACK,		/* left to the kernel's own forwarding */
	COUNT_ARP,		/* ARP requests answered */
	COUNT_CT_NEW,		/* connections first seen */
	COUNT_CT_FOUND,		/* packets of known connections */
	COUNT_DROP_SPOOFED,	/* not from the pod's own address */
	COUNT_DROP_DENIED,	/* by policy */
	COUNT_DROP_OTHER,	/* neither IPv4 nor ARP, too short, no way to go */
	COUNTERS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} cnb_counters SEC(".maps");

static __always_inline void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&cnb_counters, &what);

	if (n)
		(*n)++;
}

static __always_inline int drop(__u32 why)
{
	count(why);
	return TC_ACT_SHOT;
}
