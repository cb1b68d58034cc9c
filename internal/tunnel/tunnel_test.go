package tunnel

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
)

func checksum(header []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

func TestDecrementTTLKeepsTheChecksumRight(t *testing.T) {
	for id := range 1 << 16 {
		h := []byte{0x45, 0, 0x05, 0xdc, byte(id >> 8), byte(id), 0x40, 0, 64, 17, 0, 0, 10, 244, 1, 2, 10, 244, 2, 2}
		binary.BigEndian.PutUint16(h[10:], checksum(h))
		if !decrementTTL(h) || h[8] != 63 {
			t.Fatalf("TTL %d", h[8])
		}
		if got := checksum(h); got != 0 && got != 0xffff {
			t.Fatalf("identification %d: checksum is wrong by %#x", id, got)
		}
	}
	for _, h := range [][]byte{{0x45, 8: 1, 19: 0}, {0x45, 8: 0, 19: 0}, {0x65, 8: 64, 19: 0}} {
		if decrementTTL(h) {
			t.Errorf("% x passes", h)
		}
	}
}

func TestServeArgRefuses(t *testing.T) {
	for arg, want := range map[string]string{
		"":                                 "configuration",
		"{":                                "configuration",
		`{"device":"x","local":"[::1]:1"}`: "IPv4",
		`{"device":"x","local":"127.0.0.1:0","routes":[{"pods":"fd00::/8","node":"198.18.0.1:8285"}]}`: "IPv4",
	} {
		if err := ServeArg(t.Context(), arg, strings.NewReader("")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
	c := Config{Device: "flannel0", Local: netip.MustParseAddrPort("198.18.0.1:8285")}
	if arg, err := c.Arg(); err != nil || !strings.Contains(arg, "198.18.0.1:8285") {
		t.Errorf("%s (%v)", arg, err)
	}
}

// What wireguard-go is asked for its counters is answered with these alone: its state has
// the private key.
func TestCountersInAState(t *testing.T) {
	state := "private_key=aa\nlisten_port=51820\npublic_key=bb\ntx_bytes=100\nrx_bytes=7\npublic_key=cc\ntx_bytes=23\nrx_bytes=1\n"
	if got, want := countersIn(state), (WireGuardCounters{Sent: 123, Received: 8}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
