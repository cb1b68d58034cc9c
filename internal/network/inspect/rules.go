// Package inspect reads what the network of a node consists of while it is measured: its
// rules with their counters, and the memory of its sets and eBPF maps.
package inspect

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netfilter"
	"github.com/cnibench/cnibench/internal/netns"
)

// RuleReader reads the rules of one node's namespace, again and again.
type RuleReader struct {
	node netns.NS
	conn *netlink.Conn
	// counted are the base chains that were made to count their packets.
	counted map[string]bool
}

// OpenRules opens the rules of a namespace. Close it.
func OpenRules(node netns.NS) (*RuleReader, error) {
	r := &RuleReader{node: node, counted: map[string]bool{}}
	err := netns.Do(node, func() (err error) {
		r.conn, err = netlink.Dial(unix.NETLINK_NETFILTER, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("rules of %s: %w", node.Name, err)
	}
	return r, nil
}

// Close ends it.
func (r *RuleReader) Close() error { return r.conn.Close() }

// Read reads all rules of nf_tables, which iptables-nft and nftables write, and
// those of the legacy iptables, where the namespace has any. A base chain of
// nf_tables that does not count the packets that reach its end gets a counter: that
// alone shows how many entered it. It is one more addition for each packet there.
func (r *RuleReader) Read(ctx context.Context) (netfilter.Ruleset, error) {
	rules, err := r.tables()
	if err != nil {
		return rules, fmt.Errorf("rules of %s: %w", r.node.Name, err)
	}
	legacy, err := r.legacy(ctx)
	rules.Chains = append(rules.Chains, legacy.Chains...)
	return rules, err
}

func (r *RuleReader) tables() (netfilter.Ruleset, error) {
	chains, err := r.dump(unix.NFT_MSG_GETCHAIN)
	if missing := noNFTables(err); err != nil {
		return netfilter.Ruleset{}, missing
	}
	var out netfilter.Ruleset
	at, uncounted := map[[2]string]int{}, []nftChain{}
	for _, m := range chains {
		c, err := parseNFTChain(m.Data)
		if err != nil {
			return out, err
		}
		if c.Base && c.Policy == nil && !r.counted[c.Table+" "+c.Name] {
			uncounted = append(uncounted, c)
		}
		at[[2]string{c.Table, c.Name}] = len(out.Chains)
		out.Chains = append(out.Chains, c.Chain)
	}
	if len(uncounted) > 0 {
		if err := r.count(uncounted); err != nil {
			return out, err
		}
		return r.tables() // once: count has noted them
	}
	rules, err := r.dump(unix.NFT_MSG_GETRULE)
	if err != nil {
		return out, err
	}
	for _, m := range rules {
		table, chain, rule, err := parseNFTRule(m.Data)
		if err != nil {
			return out, err
		}
		i, ok := at[[2]string{table, chain}]
		if !ok {
			return out, netfilter.ErrChanged
		}
		out.Chains[i].Rules = append(out.Chains[i].Rules, rule)
	}
	return out, nil
}

// noNFTables takes a kernel without nf_tables for one without rules of it.
func noNFTables(err error) error {
	for _, known := range []error{unix.EOPNOTSUPP, unix.EINVAL, unix.EPROTONOSUPPORT} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return err
}

// dump lists chains or rules. One that the kernel says was interrupted by a
// change is repeated.
func (r *RuleReader) dump(kind uint16) ([]netlink.Message, error) {
	got, err := netns.Dump(func() ([]netlink.Message, error) {
		return r.conn.Execute(netlink.Message{
			Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind), Flags: netlink.Request | netlink.Dump},
			Data:   []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, 0},
		})
	})
	return got, err
}

// count makes base chains count what comes to their ends (NFTA_CHAIN_COUNTERS).
func (r *RuleReader) count(chains []nftChain) error {
	edge := func(kind uint16) netlink.Message { // of a batch, struct nfgenmsg with the subsystem
		return netlink.Message{
			Header: netlink.Header{Type: netlink.HeaderType(kind), Flags: netlink.Request},
			Data:   []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, unix.NFNL_SUBSYS_NFTABLES},
		}
	}
	batch := []netlink.Message{edge(unix.NFNL_MSG_BATCH_BEGIN)}
	for _, c := range chains {
		r.counted[c.Table+" "+c.Name] = true
		counters := netlink.NewAttributeEncoder()
		counters.ByteOrder = binary.BigEndian
		counters.Uint64(unix.NFTA_COUNTER_BYTES, 0)
		counters.Uint64(unix.NFTA_COUNTER_PACKETS, 0)
		zero, err := counters.Encode()
		if err != nil {
			return err
		}
		attrs, err := netlink.MarshalAttributes([]netlink.Attribute{
			{Type: unix.NFTA_CHAIN_TABLE, Data: []byte(c.table + "\x00")},
			{Type: unix.NFTA_CHAIN_NAME, Data: []byte(c.Name + "\x00")},
			{Type: unix.NLA_F_NESTED | unix.NFTA_CHAIN_COUNTERS, Data: zero},
		})
		if err != nil {
			return err
		}
		batch = append(batch, netlink.Message{
			Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWCHAIN, Flags: netlink.Request | netlink.Acknowledge},
			Data:   append([]byte{c.family, unix.NFNETLINK_V0, 0, 0}, attrs...),
		})
	}
	if _, err := r.conn.SendMessages(append(batch, edge(unix.NFNL_MSG_BATCH_END))); err != nil {
		return fmt.Errorf("make chains count: %w", err)
	}
	for range chains {
		if _, err := r.conn.Receive(); err != nil {
			return fmt.Errorf("make chains count: %w", err)
		}
	}
	return nil
}

// legacy reads the tables of the legacy iptables, where there are any.
func (r *RuleReader) legacy(ctx context.Context) (netfilter.Ruleset, error) {
	const saves = "iptables-legacy-save"
	var tables []byte
	err := netns.Do(r.node, func() (err error) {
		tables, err = os.ReadFile("/proc/thread-self/net/ip_tables_names")
		return err
	})
	if errors.Is(err, os.ErrNotExist) || len(tables) == 0 {
		return netfilter.Ruleset{}, nil
	}
	if err != nil {
		return netfilter.Ruleset{}, err
	}
	if _, err := exec.LookPath(saves); err != nil {
		return netfilter.Ruleset{}, fmt.Errorf("%s has rules of the legacy iptables: %s is not installed: apt-get install iptables", r.node.Name, saves)
	}
	run := exec.NewRunner()
	defer run.Close()
	res, err := run.Run(ctx, exec.Cmd{Argv: []string{saves, "--counters"}, NetNS: r.node.Path})
	if err != nil {
		return netfilter.Ruleset{}, err
	}
	return netfilter.ParseLegacy(string(res.Stdout))
}

// nftChain is a chain with what names it to the kernel.
type nftChain struct {
	netfilter.Chain
	family byte
	table  string
}

// tableName distinguishes tables of one name by their family: "ip filter".
func tableName(family byte, name string) string {
	names := map[byte]string{unix.NFPROTO_IPV4: "ip", unix.NFPROTO_IPV6: "ip6", unix.NFPROTO_INET: "inet", unix.NFPROTO_ARP: "arp", unix.NFPROTO_BRIDGE: "bridge", unix.NFPROTO_NETDEV: "netdev"}
	if n, ok := names[family]; ok {
		return n + " " + name
	}
	return "family " + strconv.Itoa(int(family)) + " " + name
}

// attributes decodes those behind struct nfgenmsg.
func attributes(data []byte) (family byte, ad *netlink.AttributeDecoder, err error) {
	if len(data) < 4 {
		return 0, nil, errors.New("netlink: a message that is too short")
	}
	ad, err = netlink.NewAttributeDecoder(data[4:])
	if err == nil {
		ad.ByteOrder = binary.BigEndian
	}
	return data[0], ad, err
}

func parseNFTChain(data []byte) (nftChain, error) {
	family, ad, err := attributes(data)
	if err != nil {
		return nftChain{}, err
	}
	c := nftChain{family: family}
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_CHAIN_TABLE:
			c.table = ad.String()
		case unix.NFTA_CHAIN_NAME:
			c.Name = ad.String()
		case unix.NFTA_CHAIN_HOOK:
			c.Base = true
		case unix.NFTA_CHAIN_COUNTERS:
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				ad.ByteOrder = binary.BigEndian
				c.Policy = counterPackets(ad)
				return nil
			})
		}
	}
	c.Table = tableName(family, c.table)
	return c, ad.Err()
}

// counterPackets is the packets of a counter's attributes.
func counterPackets(ad *netlink.AttributeDecoder) *uint64 {
	var packets *uint64
	for ad.Next() {
		if ad.Type() == unix.NFTA_COUNTER_PACKETS {
			n := ad.Uint64()
			packets = &n
		}
	}
	return packets
}

func parseNFTRule(data []byte) (table, chain string, r netfilter.Rule, err error) {
	family, ad, err := attributes(data)
	if err != nil {
		return "", "", r, err
	}
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_RULE_TABLE:
			table = tableName(family, ad.String())
		case unix.NFTA_RULE_CHAIN:
			chain = ad.String()
		case unix.NFTA_RULE_HANDLE:
			r.ID = strconv.FormatUint(ad.Uint64(), 10)
		case unix.NFTA_RULE_EXPRESSIONS:
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				for ad.Next() {
					ad.Nested(func(ad *netlink.AttributeDecoder) error { return expression(ad, &r) })
				}
				return ad.Err()
			})
		}
	}
	return table, chain, r, ad.Err()
}

// expression takes what one expression of a rule says of where packets go on, in
// the order of the rule. A condition behind the counter makes it one of others.
func expression(ad *netlink.AttributeDecoder, r *netfilter.Rule) error {
	var name string
	var body []byte
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_EXPR_NAME:
			name = ad.String()
		case unix.NFTA_EXPR_DATA:
			body = ad.Bytes()
		}
	}
	if err := ad.Err(); err != nil {
		return err
	}
	in, err := netlink.NewAttributeDecoder(body)
	if err != nil {
		return err
	}
	in.ByteOrder = binary.BigEndian
	switch name {
	case "counter":
		r.Packets = counterPackets(in)
	case "immediate":
		immediate(in, r)
	case "target":
		for in.Next() {
			if in.Type() == unix.NFTA_TARGET_NAME {
				r.Verdict = netfilter.Target(strings.TrimRight(in.String(), "\x00"))
			}
		}
	case "masq", "nat", "redir", "reject", "queue", "tproxy", "synproxy", "fwd":
		r.Verdict = netfilter.Final
	case "log", "notrack", "dup", "objref":
	case "lookup":
		r.Packets = nil
		for in.Next() { // with a destination register it is a map, of verdicts where that is 0
			if in.Type() == unix.NFTA_LOOKUP_DREG && in.Uint32() == unix.NFT_REG_VERDICT {
				r.Verdict = netfilter.Unknown
			}
		}
	default:
		r.Packets = nil
	}
	return in.Err()
}

// immediate takes a verdict, and nothing from a value that is put in a register.
func immediate(ad *netlink.AttributeDecoder, r *netfilter.Rule) {
	for ad.Next() {
		if ad.Type() != unix.NFTA_IMMEDIATE_DATA {
			continue
		}
		ad.Nested(func(ad *netlink.AttributeDecoder) error {
			for ad.Next() {
				if ad.Type() == unix.NFTA_DATA_VERDICT {
					ad.Nested(func(ad *netlink.AttributeDecoder) error { return verdict(ad, r) })
				}
			}
			return ad.Err()
		})
	}
}

// verdict takes a verdict of linux/netfilter/nf_tables.h, enum nft_verdicts;
// those from 0 on are netfilter's own.
func verdict(ad *netlink.AttributeDecoder, r *netfilter.Rule) error {
	ad.ByteOrder = binary.BigEndian
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_VERDICT_CODE:
			switch int32(ad.Uint32()) {
			case unix.NFT_CONTINUE:
				r.Verdict = netfilter.Next
			case unix.NFT_JUMP:
				r.Verdict = netfilter.Jump
			case unix.NFT_GOTO:
				r.Verdict = netfilter.Goto
			case unix.NFT_RETURN:
				r.Verdict = netfilter.Return
			default:
				r.Verdict = netfilter.Final
			}
		case unix.NFTA_VERDICT_CHAIN:
			r.To = ad.String()
		}
	}
	return ad.Err()
}
