//go:build ignore
/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * NodePorts in the driver, after Cilium v1.18.5 with loadBalancer.acceleration=native:
 * bpf/bpf_xdp.c (cil_xdp_entry, tail_lb_ipv4) and bpf/lib/nodeport.h (nodeport_lb4,
 * nodeport_svc_lb4, nodeport_rev_dnat_fwd_ipv4): which lookups, in which order. Backends are
 * on the node itself. Written for cnibench; see docs/services.md for what differs.
 *
 *   cnb_nodeport       cil_xdp_entry                XDP at eth0
 *   cnb_nodeport_back  nodeport_rev_dnat_fwd_ipv4   egress of eth0 and of tunnels
 */
#include "nodeport.h"

/* header gives the packet from an offset on, need bytes of which may be read. */
static __always_inline void *header(struct xdp_md *xdp, __u32 offset, __u32 need)
{
	void *at = (void *)(long)xdp->data + offset;

	return at + need > (void *)(long)xdp->data_end ? NULL : at;
}

/* finish_ip rewrites the destination in a packet's IP header. */
static __always_inline void finish_ip(struct iphdr *ip, __be32 address)
{
	__be32 old = ip->daddr;

	ip->check = ~fold(bpf_csum_diff(&old, sizeof(old), &address, sizeof(address), (__u16)~ip->check));
	ip->daddr = address;
}

/* is_unfinished reports whether whoever takes the packet is to finish its checksum
 * (CHECKSUM_PARTIAL), as the kernel leaves it where both ends are one machine: it is then the sum
 * of addresses, protocol and length alone. Nothing else shows an XDP program that. A finished
 * one looks the same by chance once in 65,536, so a connection's other packets decide. */
static __always_inline bool is_unfinished(struct iphdr *ip, __sum16 sum, struct connection *c)
{
	__u32 length = bpf_ntohs(ip->tot_len) - ip->ihl * 4;
	__be32 pseudo[3] = { ip->saddr, ip->daddr, bpf_htonl(ip->protocol << 16 | (length & 0xffff)) };

	if (sum != fold(bpf_csum_diff(NULL, 0, pseudo, sizeof(pseudo), 0))) {
		c->finished++;
		return false;
	}
	c->unfinished++;
	return c->finished / 64 < c->unfinished;
}

/* finish_l4 rewrites the port, and the checksum of TCP or UDP. */
static __always_inline void finish_l4(struct iphdr *ip, struct ports *at, __sum16 *sum, struct service_backend *to,
				      struct connection *c)
{
	__be32 old[2] = { ip->daddr, at->dest }, now[2] = { to->address, to->port };

	at->dest = to->port;
	if (ip->protocol == IPPROTO_UDP && !*sum)
		return;
	if (is_unfinished(ip, *sum, c)) {
		*sum = fold(bpf_csum_diff(old, sizeof(old[0]), now, sizeof(now[0]), *sum));
		count(NODEPORT_UNFINISHED);
		return;
	}
	*sum = ~fold(bpf_csum_diff(old, sizeof(old), now, sizeof(now), (__u16)~*sum));
	if (ip->protocol == IPPROTO_UDP && !*sum)
		*sum = 0xffff;
}

/* rewrite sends a packet to a backend. A later fragment has no ports. */
static __always_inline bool rewrite(struct xdp_md *xdp, struct iphdr *ip, struct service_backend *to,
				    struct connection *c)
{
	__u32 l4 = ETH_HLEN + ip->ihl * 4;
	struct tcphdr *tcp;
	struct udphdr *udp;

	if (ip->frag_off & bpf_htons(IP_FRAGMENT_OFFSET)) {
		finish_ip(ip, to->address);
		return true;
	}
	if (ip->protocol == IPPROTO_TCP) {
		tcp = header(xdp, l4, sizeof(*tcp));
		if (!tcp)
			return false;
		finish_l4(ip, (struct ports *)tcp, &tcp->check, to, c);
	} else {
		udp = header(xdp, l4, sizeof(*udp));
		if (!udp)
			return false;
		finish_l4(ip, (struct ports *)udp, &udp->check, to, c);
	}
	finish_ip(ip, to->address);
	return true;
}

/* choose is lb4_local of a new connection: a backend by chance, which the connection keeps. */
static __always_inline struct service_backend *choose(struct connection_key *key, struct service_key *service,
						      struct service_slot *slot)
{
	struct connection fresh = {};

	service->slot = bpf_get_prandom_u32() % slot->count + 1;
	slot = bpf_map_lookup_elem(&cnb_services, service);
	if (!slot)
		return NULL;
	fresh.backend = slot->backend;
	touch(&fresh, key->protocol);
	if (bpf_map_update_elem(&cnb_np_conns, key, &fresh, BPF_ANY))
		return NULL;
	return bpf_map_lookup_elem(&cnb_backends, &fresh.backend);
}

/* remember is nodeport_svc_lb4 once the backend is known: what answers are to come from. */
static __always_inline struct connection *remember(struct connection_key *key, struct service_backend *to)
{
	struct connection fresh = { .address = key->dest, .port = key->ports.dest };
	struct connection *known;

	key->dest = to->address;
	key->ports.dest = to->port;
	key->kind = TO_BACKEND;
	known = bpf_map_lookup_elem(&cnb_np_conns, key);
	if (known && known->address == fresh.address && known->port == fresh.port) {
		touch(known, key->protocol);
		return known;
	}
	touch(&fresh, key->protocol);
	count(NODEPORT_NEW);
	if (bpf_map_update_elem(&cnb_np_conns, key, &fresh, BPF_ANY))
		return NULL;
	return bpf_map_lookup_elem(&cnb_np_conns, key);
}

/* tcp_flags are the byte of TCP's flags; 0 of what is no TCP. */
static __always_inline __u8 tcp_flags(struct xdp_md *xdp, struct iphdr *ip)
{
	struct tcphdr *tcp;

	if (ip->protocol != IPPROTO_TCP)
		return 0;
	tcp = header(xdp, ETH_HLEN + ip->ihl * 4, sizeof(*tcp));
	return tcp ? ((__u8 *)tcp)[13] : 0;
}

/* to_backend finds the service and the backend of a packet to the node. */
static __always_inline struct service_backend *to_backend(struct connection_key *key, __u8 flags)
{
	struct service_key service = { .port = key->ports.dest, .protocol = key->protocol, .scope = SCOPE_EXTERNAL };
	struct service_slot *slot = bpf_map_lookup_elem(&cnb_services, &service);
	struct connection *known;

	if (!slot || !slot->count)
		return NULL;
	known = bpf_map_lookup_elem(&cnb_np_conns, key);
	if (!known || (flags & TCP_SYN && known->closing))
		return choose(key, &service, slot);
	if (flags & (TCP_FIN | TCP_RST))
		known->closing = 1;
	touch(known, key->protocol);
	return bpf_map_lookup_elem(&cnb_backends, &known->backend);
}

SEC("xdp.frags")
int cnb_nodeport(struct xdp_md *xdp)
{
	struct ethhdr *eth = header(xdp, 0, ETH_HLEN + sizeof(struct iphdr));
	struct connection_key key = { .kind = TO_SERVICE };
	struct service_backend *to;
	struct connection *c;
	struct ports *ports;
	struct iphdr *ip;

	if (!eth || eth->h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	ip = (void *)(eth + 1);
	if (ip->daddr != node_address || (ip->protocol != IPPROTO_TCP && ip->protocol != IPPROTO_UDP))
		return XDP_PASS;
	if (!(ip->frag_off & bpf_htons(IP_FRAGMENT_OFFSET))) {
		ports = header(xdp, ETH_HLEN + ip->ihl * 4, sizeof(*ports));
		if (!ports)
			return XDP_PASS;
		key.ports = *ports;
	}
	if (!ports_of_datagram(ip, &key.ports))
		return XDP_PASS;
	key.source = ip->saddr;
	key.dest = ip->daddr;
	key.protocol = ip->protocol;
	to = to_backend(&key, ip->frag_off & bpf_htons(IP_FRAGMENT_OFFSET) ? 0 : tcp_flags(xdp, ip));
	if (!to) {
		count(NODEPORT_NONE);
		return XDP_PASS;
	}
	c = remember(&key, to);
	if (!c || !rewrite(xdp, ip, to, c))
		return XDP_DROP;
	count(NODEPORT_FORWARD);
	/* The backend is on this node (backend_local). */
	return XDP_PASS;
}

/* from_service gives an answer the address and port that its client asked. */
static __always_inline void from_service(struct __sk_buff *skb, struct iphdr *ip, struct ports *p, struct connection *c)
{
	__u32 l4 = l3_offset + ip->ihl * 4, sum = l4 + (ip->protocol == IPPROTO_TCP ? 16 : 6);
	__u64 zero = ip->protocol == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
	__be32 address = c->address;
	__be16 port = c->port;

	if (!(ip->frag_off & bpf_htons(IP_FRAGMENT_OFFSET))) {
		bpf_l4_csum_replace(skb, sum, ip->saddr, address, BPF_F_PSEUDO_HDR | zero | sizeof(address));
		bpf_l4_csum_replace(skb, sum, p->source, port, zero | sizeof(port));
		bpf_skb_store_bytes(skb, l4, &port, sizeof(port), 0);
	}
	bpf_l3_csum_replace(skb, l3_offset + offsetof(struct iphdr, check), ip->saddr, address, sizeof(address));
	bpf_skb_store_bytes(skb, l3_offset + offsetof(struct iphdr, saddr), &address, sizeof(address), 0);
	count(NODEPORT_REVERSE);
}

SEC("tc")
int cnb_nodeport_back(struct __sk_buff *skb)
{
	struct connection_key key = { .kind = TO_BACKEND };
	struct connection *known;
	struct ports p = {};
	struct iphdr ip;

	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, l3_offset, &ip, sizeof(ip)))
		return TC_ACT_UNSPEC;
	if (ip.protocol != IPPROTO_TCP && ip.protocol != IPPROTO_UDP)
		return TC_ACT_UNSPEC;
	if (!(ip.frag_off & bpf_htons(IP_FRAGMENT_OFFSET)) && bpf_skb_load_bytes(skb, l3_offset + ip.ihl * 4, &p, sizeof(p)))
		return TC_ACT_UNSPEC;
	if (!ports_of_datagram(&ip, &p))
		return TC_ACT_UNSPEC;
	key.source = ip.daddr;
	key.dest = ip.saddr;
	key.ports = (struct ports){ .source = p.dest, .dest = p.source };
	key.protocol = ip.protocol;
	known = bpf_map_lookup_elem(&cnb_np_conns, &key);
	if (known) {
		touch(known, ip.protocol);
		from_service(skb, &ip, &p, known);
	}
	return TC_ACT_UNSPEC;
}
