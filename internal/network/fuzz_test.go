package network

import (
	"net/netip"
	"strings"
	"testing"
)

// FuzzFlannelEnv: a subnet.env that is taken has what a node needs.
func FuzzFlannelEnv(f *testing.F) {
	f.Add("FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n")
	f.Add("FLANNEL_NETWORK=10.244.0.0/16,\nFLANNEL_MTU=-1\n")
	f.Fuzz(func(t *testing.T, text string) {
		env, err := parseFlannelEnv(text)
		if err != nil {
			return
		}
		if env.mtu <= 0 || len(env.networks) == 0 || len(env.subnets) == 0 || len(env.networks)+len(env.subnets) > strings.Count(text, ",")+strings.Count(text, "\n")+1 {
			t.Errorf("%q was read as %+v", text, env)
		}
		for _, p := range append(env.networks, env.subnets...) {
			if !p.IsValid() {
				t.Errorf("%q has the prefix %v", text, p)
			}
		}
	})
}

// FuzzUserList: the subnets of a conflist that people bring are IPv4 ones without host bits.
func FuzzUserList(f *testing.F) {
	f.Add([]byte(`{"plugins":[{"type":"bridge","ipam":{"type":"host-local","ranges":[[{"subnet":"10.9.0.7/24"}]]}}]}`))
	f.Add([]byte(`{"plugins":[{"ipam":{"type":"host-local","subnet":"fd00::/64"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := readUserList(data)
		if err != nil {
			return
		}
		if len(l.names()) > 2*len(l.Plugins) {
			t.Errorf("%q has the plugins %v", data, l.names())
		}
		for _, p := range l.subnets() {
			if !p.Addr().Is4() || p != p.Masked() || p == (netip.Prefix{}) {
				t.Errorf("%q has the subnet %v", data, p)
			}
		}
	})
}

// FuzzNFT: whatever netlink messages hold, chains and rules of them are read or refused.
func FuzzNFT(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 8, 0, 1, 0, 'n', 'a', 't', 0})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parseNFTChain(data); err == nil && len(data) < 4 {
			t.Errorf("%x is a chain", data)
		}
		table, chain, r, err := parseNFTRule(data)
		if err == nil && (len(data) < 4 || len(table)+len(chain)+len(r.ID) > len(data)+64) {
			t.Errorf("%x is a rule of %q, %q: %+v", data, table, chain, r)
		}
	})
}
