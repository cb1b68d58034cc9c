//go:build ignore
/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Services at the socket, after Cilium v1.18.5 bpf/bpf_sock.c (__sock4_xlate_fwd,
 * __sock4_xlate_rev): which lookups, in which order. What a program connects or
 * sends to a service goes to one of its backends from the start, and no packet
 * has the service's address. Written for cnibench; see docs/services.md.
 *
 *   cnb_connect4      cil_sock4_connect       cgroup/connect4
 *   cnb_sendmsg4      cil_sock4_sendmsg       cgroup/sendmsg4
 *   cnb_recvmsg4      cil_sock4_recvmsg       cgroup/recvmsg4
 *   cnb_getpeername4  cil_sock4_getpeername   cgroup/getpeername4
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include "services.h"

char __license[] SEC("license") = "GPL";

#define PROCEED 1

/* The range of ports of nodes: --node-port-range. */
#define NODE_PORT_MIN 30000
#define NODE_PORT_MAX 32767

/* The addresses of nodes, in place of cilium_ipcache. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __be32);
	__type(value, __u32);
} cnb_nodes SEC(".maps");

struct reverse_key {
	__u64 cookie;
	__be32 address;
	__be16 port;
	__u16 pad;
};

/* cilium_lb4_reverse_sk: what a socket sees in place of a backend's address. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536); /* Cilium: 262144 */
	__type(key, struct reverse_key);
	__type(value, struct service_backend);
} cnb_reverse SEC(".maps");

enum service_counter { SERVICE_FORWARD, SERVICE_REVERSE, SERVICE_NONE, SERVICE_COUNTERS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SERVICE_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} cnb_service_cnt SEC(".maps");

static __always_inline void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&cnb_service_cnt, &what);

	if (n)
		(*n)++;
}

/* service_at is lb4_lookup_service, and where that finds none
 * sock4_wildcard_lookup. */
static __always_inline struct service_slot *service_at(struct service_key *key)
{
	struct service_slot *svc = bpf_map_lookup_elem(&cnb_services, key);
	__u16 port = bpf_ntohs(key->port);
	__be32 address = key->address;

	if (svc)
		return svc;
	if (port < NODE_PORT_MIN || port > NODE_PORT_MAX)
		return NULL;
	if (!bpf_map_lookup_elem(&cnb_nodes, &address))
		return NULL;
	key->address = 0;
	return bpf_map_lookup_elem(&cnb_services, key);
}

static __always_inline void forward(struct bpf_sock_addr *ctx)
{
	__be32 address = ctx->user_ip4;
	__be16 port = (__be16)ctx->user_port;
	struct service_key key = { .address = address, .port = port, .protocol = (__u8)ctx->protocol };
	struct service_backend original = { .address = address, .port = port };
	struct service_slot *slot = service_at(&key);
	struct service_backend *backend;
	struct reverse_key reverse = {};
	__u32 number, random;

	if (!slot || !slot->count) {
		count(SERVICE_NONE);
		return;
	}
	/* sock_select_slot: TCP by chance, datagrams by their socket. */
	random = ctx->protocol == IPPROTO_TCP ? bpf_get_prandom_u32() : (__u32)bpf_get_socket_cookie(ctx);
	key.slot = random % slot->count + 1;
	slot = bpf_map_lookup_elem(&cnb_services, &key);
	if (!slot)
		return;
	number = slot->backend;
	backend = bpf_map_lookup_elem(&cnb_backends, &number);
	if (!backend)
		return;
	reverse.cookie = bpf_get_socket_cookie(ctx);
	reverse.address = backend->address;
	reverse.port = backend->port;
	if (bpf_map_update_elem(&cnb_reverse, &reverse, &original, BPF_ANY))
		return;
	ctx->user_ip4 = backend->address;
	ctx->user_port = backend->port;
	count(SERVICE_FORWARD);
}

static __always_inline void backward(struct bpf_sock_addr *ctx)
{
	struct reverse_key key = {
		.cookie = bpf_get_socket_cookie(ctx), .address = ctx->user_ip4, .port = (__be16)ctx->user_port,
	};
	struct service_backend *original = bpf_map_lookup_elem(&cnb_reverse, &key);

	if (!original)
		return;
	ctx->user_ip4 = original->address;
	ctx->user_port = original->port;
	count(SERVICE_REVERSE);
}

/* PROGRAM is one of them: what it does to the address; the call goes on. */
#define PROGRAM(hook, way)                        \
	SEC("cgroup/" #hook)                      \
	int cnb_##hook(struct bpf_sock_addr *ctx) \
	{                                         \
		way(ctx);                         \
		return PROCEED;                   \
	}

PROGRAM(connect4, forward)
PROGRAM(sendmsg4, forward)
PROGRAM(recvmsg4, backward)
PROGRAM(getpeername4, backward)
