//go:build ignore
/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Same-node TCP that bypasses the network: what one socket sends is put into
 * the other's receive queue (sockops and sk_msg; the idea of Intel's
 * istio-tcpip-bypass and of Cilium's former sockops). Written for cnibench;
 * see docs/datapaths.md.
 *
 *   cnb_established  at a cgroup    notes sockets of new connections
 *   cnb_message      at cnb_sockets redirects what they send
 *
 * One map belongs to one node: its pods find each other in it, and nobody else.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char __license[] SEC("license") = "GPL";

#define AF_INET 2
#define AF_INET6 10

/* A socket by its connection, as itself sees it. Ports are in host order. */
struct sock_key {
	__be32 local, remote;
	__u32 local_port, remote_port;
};

struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 65535);
	__type(key, struct sock_key);
	__type(value, __u64);
} cnb_sockets SEC(".maps");

/* What was decided of a socket at its first message. */
enum { UNDECIDED, REDIRECTED, PLAIN };

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} cnb_decided SEC(".maps");

enum sock_counter { SOCK_NOTED, SOCK_REDIRECTED, SOCK_PLAIN, SOCK_COUNTERS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SOCK_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} cnb_sock_count SEC(".maps");

static __always_inline void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&cnb_sock_count, &what);

	if (n)
		(*n)++;
}

/* A socket that listens on all addresses takes IPv4 as ::ffff:a.b.c.d. */
static __always_inline bool speaks_ipv4(struct bpf_sock_ops *ops)
{
	return ops->family == AF_INET ||
	       (ops->family == AF_INET6 && !ops->remote_ip6[0] && !ops->remote_ip6[1] &&
		ops->remote_ip6[2] == bpf_htonl(0xffff));
}

SEC("sockops")
int cnb_established(struct bpf_sock_ops *ops)
{
	struct sock_key key;

	if (ops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (!speaks_ipv4(ops))
		return 1;
	/* Loopback addresses are of every pod of the node: they name nobody. */
	if ((ops->local_ip4 & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000))
		return 1;
	key = (struct sock_key){
		.local = ops->local_ip4, .remote = ops->remote_ip4,
		.local_port = ops->local_port, .remote_port = bpf_ntohl(ops->remote_port),
	};
	if (!bpf_sock_hash_update(ops, &cnb_sockets, &key, BPF_NOEXIST))
		count(SOCK_NOTED);
	return 1;
}

/* The first message decides for the connection's life. Were a later one
 * redirected after an earlier one went by the network, it could overtake it. */
SEC("sk_msg")
int cnb_message(struct sk_msg_md *msg)
{
	struct sock_key other = {
		.local = msg->remote_ip4, .remote = msg->local_ip4,
		.local_port = bpf_ntohl(msg->remote_port), .remote_port = msg->local_port,
	};
	__u32 *decided;

	if (!msg->sk)
		return SK_PASS;
	decided = bpf_sk_storage_get(&cnb_decided, msg->sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!decided || *decided == PLAIN) {
		count(SOCK_PLAIN);
		return SK_PASS;
	}
	if (bpf_msg_redirect_hash(msg, &cnb_sockets, &other, BPF_F_INGRESS) == SK_PASS) {
		*decided = REDIRECTED;
		count(SOCK_REDIRECTED);
		return SK_PASS;
	}
	if (*decided == REDIRECTED)
		return SK_DROP; /* the other end is closed */
	*decided = PLAIN;
	count(SOCK_PLAIN);
	return SK_PASS;
}
