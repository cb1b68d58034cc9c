package tunnel

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

// twoPeers is a node whose datagrams a test reads: each peer's are what waits.
func twoPeers(t testing.TB, limit int) *sleeve {
	t.Helper()
	f := &sleeve{byName: map[[sleeveName]byte]int{}, where: map[[6]byte]int{}, limit: limit, udp: -1}
	err := f.know(Sleeve{Name: "02:00:00:00:00:01", Peers: []SleevePeer{
		{Name: "02:00:00:00:00:02", Node: netip.MustParseAddrPort("198.18.0.2:6783")},
		{Name: "02:00:00:00:00:03", Node: netip.MustParseAddrPort("198.18.0.3:6783")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func frameOf(dst, src byte, payload int) []byte {
	f := make([]byte, ethernet+payload)
	copy(f, []byte{2, 9, 9, 9, 9, dst})
	copy(f[6:], []byte{2, 9, 9, 9, 9, src})
	return f
}

// TestSleeveForwardsByWhatItLearnt: to all until an address is known, to its
// node then, and not at all where both are here.
func TestSleeveForwardsByWhatItLearnt(t *testing.T) {
	f := twoPeers(t, 1472)
	waiting := func() [2]int { return [2]int{len(f.peers[0].out) - sleeveName, len(f.peers[1].out) - sleeveName} }
	f.forward(frameOf(7, 1, 10))
	one := sleeveHeader + ethernet + 10
	if got := waiting(); got != [2]int{one, one} {
		t.Errorf("to an address that is not known: %v", got)
	}
	f.learn([6]byte{2, 9, 9, 9, 9, 7}, 1)
	f.forward(frameOf(7, 1, 10))
	if got := waiting(); got != [2]int{one, 2 * one} {
		t.Errorf("to an address of the second node: %v", got)
	}
	f.forward(frameOf(1, 2, 10)) // address 1 sent from here
	if got := waiting(); got != [2]int{one, 2 * one} {
		t.Errorf("to an address of this node: %v", got)
	}
	f.forward(frameOf(7, 1, 1472)) // too large for one datagram
	if got := waiting(); got != [2]int{one, 2 * one} {
		t.Errorf("a frame that is too large: %v", got)
	}
}

// TestSleeveRoundTrip reads at a peer what a node wrote for it.
func TestSleeveRoundTrip(t *testing.T) {
	f := twoPeers(t, 1472)
	first, second := frameOf(7, 1, 100), frameOf(8, 1, 1)
	f.forward(first)
	f.forward(second)
	peer := &sleeve{byName: map[[sleeveName]byte]int{}, where: map[[6]byte]int{}, limit: 1472}
	err := peer.know(Sleeve{Name: "02:00:00:00:00:03", Peers: []SleevePeer{{Name: "02:00:00:00:00:01", Node: netip.MustParseAddrPort("198.18.0.1:6783")}}})
	if err != nil {
		t.Fatal(err)
	}
	var got [][]byte
	peer.eachFrame(f.peers[1].out, func(from int, frame []byte) {
		if from != 0 {
			t.Errorf("a frame from peer %d", from)
		}
		got = append(got, slices.Clone(frame))
	})
	if len(got) != 2 || !bytes.Equal(got[0], first) || !bytes.Equal(got[1], second) {
		t.Errorf("%d frames came through: % x", len(got), got)
	}
	peer.eachFrame(f.peers[0].out, func(int, []byte) { t.Error("a frame for another node was taken") })
}

func TestSleeveForgetsMadeUpAddresses(t *testing.T) {
	f := twoPeers(t, 1472)
	for i := range maxMACs + 10 {
		f.learn([6]byte{2, 0, byte(i >> 16), byte(i >> 8), byte(i), 0}, 0)
	}
	if len(f.where) > maxMACs {
		t.Errorf("%d addresses are remembered", len(f.where))
	}
	f.learn([6]byte{1, 0, 0, 0, 0, 1}, 0)
	if _, known := f.where[[6]byte{1, 0, 0, 0, 0, 1}]; known {
		t.Error("a group's address was learnt")
	}
}

func FuzzSleeveFrames(f *testing.F) {
	node := twoPeers(f, 1472)
	header := slices.Concat(node.peers[0].name[:], node.name[:])
	whole := slices.Concat(node.peers[0].name[:], header, binary.BigEndian.AppendUint16(nil, 20), make([]byte, 20))
	for _, seed := range [][]byte{{}, whole, whole[:len(whole)-1], append(whole, 1), slices.Concat(whole, header)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, datagram []byte) {
		defer fuzzed.Within(t)()
		total := 0
		node.eachFrame(datagram, func(from int, frame []byte) {
			if from < 0 || from > 1 || len(frame) < ethernet {
				t.Fatalf("from %d, %d bytes", from, len(frame))
			}
			total += len(frame)
		})
		if total > len(datagram) {
			t.Fatalf("%d bytes of frames in %d", total, len(datagram))
		}
	})
}

func TestSleeveOverheadIsWeaves(t *testing.T) {
	// UDPOverhead + PacketOverhead + FrameOverhead + EthernetOverhead of
	// router/sleeve.go and crypto.go.
	if want := 28 + 6 + (6 + 6 + 2) + 14; SleeveOverhead != want {
		t.Errorf("%d, want %d", SleeveOverhead, want)
	}
	f := twoPeers(t, 1500-28)
	f.add(&f.peers[0], make([]byte, ethernet+1500-SleeveOverhead))
	if got := len(f.peers[0].out); got != 1500-28 {
		t.Errorf("a frame of the pods' MTU makes a datagram of %d bytes", got)
	}
}
