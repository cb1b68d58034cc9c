/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What Cilium's programs know: their configuration, and who has which address. */
#pragma once

#include <linux/in6.h>

#include "packet.h"

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
	__u32 ifindex;		/* the host's side of the veth or netkit */
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

/* cilium_ipcache: who has an address, and behind which node. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct prefix);
	__type(value, struct remote);
} cnb_ipcache SEC(".maps");

static __always_inline struct endpoint *endpoint_of(__be32 address)
{
	return bpf_map_lookup_elem(&cnb_endpoints, &address);
}

static __always_inline struct remote *remote_of(__be32 address)
{
	struct prefix key = { .prefixlen = 32, .address = address };

	return bpf_map_lookup_elem(&cnb_ipcache, &key);
}
