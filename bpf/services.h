/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The services of a node and their backends, which the programs at sockets and those at the
 * node's device share, as Cilium's do. */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

/* Slot 0 is the service itself, the others are its backends, from 1 on. A
 * NodePort has the address 0. It has two scopes, as one of Cilium's with
 * externalTrafficPolicy=Local: all backends for clients at this node's sockets, those of this node
 * for packets from outside. */
#define SCOPE_INTERNAL 0
#define SCOPE_EXTERNAL 1

struct service_key {
	__be32 address;
	__be16 port;
	__u8 protocol, scope;
	__u32 slot;
};

struct service_slot {
	__u32 backend;	/* its number */
	__u32 count;	/* of backends, in slot 0 */
};

/* cilium_lb4_services_v2 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536); /* and as many as there are services for */
	__type(key, struct service_key);
	__type(value, struct service_slot);
} cnb_services SEC(".maps");

struct service_backend {
	__be32 address;
	__be16 port;
	__u16 pad;
};

/* cilium_lb4_backends_v3 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct service_backend);
} cnb_backends SEC(".maps");
