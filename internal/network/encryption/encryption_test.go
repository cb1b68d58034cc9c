package encryption

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun/tuntest"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
)

func method(t *testing.T, name string) Method {
	t.Helper()
	m, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What is left for packets between nodes, by the sizes of the headers. ESP pads, so some
// MTUs leave as much as the next smaller ones.
func TestNodeMTU(t *testing.T) {
	for _, tt := range []struct {
		method  string
		link    int
		v4, six int
	}{
		{"", 1500, 1500, 1500},
		{result.EncryptionWireGuard, 1500, 1440, 1420},
		{result.EncryptionWireGuardGo, 9000, 8940, 8920},
		{result.EncryptionIPsec, 1500, 1466, 1466},
		{result.EncryptionIPsec, 1499, 1462, 1462},
		{result.EncryptionIPsec, 1503, 1466, 1466},
		{result.EncryptionIPsec, 1504, 1470, 1470},
		{result.EncryptionIPsec, 9000, 8966, 8966},
	} {
		m := method(t, tt.method)
		if v4, six := m.NodeMTU(tt.link, false), m.NodeMTU(tt.link, true); v4 != tt.v4 || six != tt.six {
			t.Errorf("%s on %d: %d and %d, want %d and %d", tt.method, tt.link, v4, six, tt.v4, tt.six)
		}
	}
	for link := 1300; link < 1320; link++ { // an ESP packet of the largest payload fits, and one byte more does not
		left := method(t, result.EncryptionIPsec).NodeMTU(link, false)
		size := func(packet int) int { return 20 + 8 + 8 + (packet-20+2+3)/4*4 + 16 }
		if size(left) > link || size(left+1) <= link {
			t.Errorf("%d on %d: ESP makes %d of it, and %d of a byte more", left, link, size(left), size(left+1))
		}
	}
}

// Every network has an answer, and what the tunnels of the lab are.
func TestWhichNetworksCanBeEncrypted(t *testing.T) {
	all := func(netns.Feature) error { return nil }
	can := map[string][]string{}
	for _, n := range catalog.List() {
		for _, m := range methods() {
			if err := m.Refuses(n, all); err == nil {
				can[m.Name] = append(can[m.Name], n.Name)
			} else if !strings.HasPrefix(err.Error(), n.Name+" cannot have encryption by "+m.Name+": ") {
				t.Errorf("%v", err)
			}
		}
	}
	for name, want := range map[string][]string{
		result.EncryptionWireGuard: {"bridge", "flannel/vxlan", "flannel/host-gw", "flannel/udp", "flannel/ipip", "calico/direct", "calico/vxlan-policy",
			"canal", "kube-router", "cilium/vxlan", "cilium/geneve", "antrea/geneve", "antrea/noencap", "weave/fastdp", "weave/sleeve", "docker/overlay"},
		result.EncryptionIPsec: {"flannel/vxlan", "flannel/udp", "flannel/ipip", "calico/vxlan", "calico/ipip", "canal", "cilium/vxlan", "cilium/geneve",
			"antrea/geneve", "ovn/geneve", "ovn/kube-ovn", "weave/fastdp", "weave/sleeve", "docker/overlay"},
	} {
		for _, n := range want {
			if !contains(can[name], n) {
				t.Errorf("%s cannot be encrypted by %s", n, name)
			}
		}
		for _, n := range []string{"macvlan", "docker/macvlan", "podman/macvlan", "spiderpool/macvlan", "spiderpool/macvlan-routed", "spiderpool/ipvlan",
			"spiderpool/sriov", "flannel/wireguard", "bridge+bigtcp", "calico/ebpf", "cilium/native"} {
			if contains(can[name], n) {
				t.Errorf("%s can be encrypted by %s", n, name)
			}
		}
	}
	user := func(f netns.Feature) error {
		if f.Name == "openvswitch" {
			return &netns.MissingError{Feature: f.Name}
		}
		return nil
	}
	geneve, err := catalog.Find("antrea/geneve")
	if err != nil {
		t.Fatal(err)
	}
	var missing *netns.MissingError
	if err := method(t, result.EncryptionIPsec).Refuses(geneve, user); !errors.As(err, &missing) {
		t.Errorf("a switch in user space: %v", err)
	}
}

func contains(list []string, want string) bool {
	for _, s := range list {
		if s == want {
			return true
		}
	}
	return false
}

func twoNodes() []network.Node {
	var nodes []network.Node
	for i, prefix := range []string{"10.244.1.0/24", "10.244.2.0/24"} {
		nodes = append(nodes, network.Node{
			Name: "node", Index: i + 1, PodCIDR: netip.MustParsePrefix(prefix),
			Address: netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, 0, byte(i + 1)}), 16),
		})
	}
	return nodes
}

// wireguard-go takes what the lab writes to it, and knows the peer's endpoint on the wire.
func TestWireGuardGoTakesItsConfiguration(t *testing.T) {
	configs, err := wireguardConfigs(twoNodes())
	if err != nil {
		t.Fatal(err)
	}
	if *configs[0].PrivateKey == *configs[1].PrivateKey || configs[0].Peers[0].PublicKey != configs[1].PrivateKey.PublicKey() {
		t.Error("keys are shared, or do not fit")
	}
	dev := device.NewDevice(tuntest.NewChannelTUN().TUN(), conn.NewDefaultBind(), device.NewLogger(device.LogLevelSilent, ""))
	defer dev.Close()
	if err := dev.IpcSet(crossPlatform(configs[0])); err != nil {
		t.Fatal(err)
	}
	state, err := dev.IpcGet()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"listen_port=51820\n", "endpoint=198.19.0.2:51820\n", "allowed_ip=198.18.0.2/32\n", "allowed_ip=10.244.2.0/24\n"} {
		if !strings.Contains(state, want) {
			t.Errorf("wireguard-go does not have %q", strings.TrimSpace(want))
		}
	}
}

// A byte of WireGuard that left without being encrypted is found; so is a packet that came
// without ESP, and a pod's bytes that no encryption had.
func TestPlainPacketsAreFound(t *testing.T) {
	wireguard, ipsec := method(t, result.EncryptionWireGuard), method(t, result.EncryptionIPsec)
	before := Counters{Encrypted: 500, Wire: netns.Passed{Bytes: 700, Packets: 3}, Plain: 2}
	after := before
	after.Encrypted += 10 * 1452
	after.Wire.Bytes += 10 * (1452 + 42)
	after.Wire.Packets += 10
	if err := wireguard.Check("node1", before, after, false); err != nil {
		t.Error(err)
	}
	after.Wire.Bytes, after.Wire.Packets = after.Wire.Bytes+1514, after.Wire.Packets+1
	if err := wireguard.Check("node1", before, after, false); err == nil || !strings.HasPrefix(err.Error(), "not encrypted: node1 sent 16454 bytes in 11 packets") {
		t.Errorf("a plain packet: %v", err)
	}
	if err := ipsec.Check("node1", before, after, false); err != nil {
		t.Error(err)
	}
	after.Plain++
	if err := ipsec.Check("node1", before, after, false); err == nil || !strings.Contains(err.Error(), "refused 1 packets") {
		t.Errorf("a packet without ESP: %v", err)
	}
	if err := ipsec.Carried("node1", before, after, netns.Passed{Bytes: 10 * 1400, Packets: 10}); err != nil {
		t.Error(err)
	}
	if err := ipsec.Carried("node1", before, after, netns.Passed{Bytes: 100 * 1400, Packets: 100}); err == nil {
		t.Error("a pod received more than was encrypted")
	}
	if err := ipsec.Carried("node1", before, before, netns.Passed{Bytes: 42, Packets: 1}); err != nil {
		t.Errorf("an answer of the pod's own node: %v", err)
	}
}

func TestRefusedPackets(t *testing.T) {
	n, err := refused("XfrmInError             \t0\nXfrmInTmplMismatch      \t17\nXfrmInNoPols            \t3\n")
	if n != 17 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := refused("XfrmInError 0\n"); err == nil {
		t.Error("a kernel without the counter")
	}
}
