package dataset

import (
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

func TestGoodputShare(t *testing.T) {
	tcp, udp := stattest.CellOf("host"), stattest.CellOf("host")
	udp.Workload = "udp_stream"
	big := tcp
	big.MTU = 9000
	small := udp
	small.MessageBytes = 64
	six := tcp
	six.Family = "ipv6"
	frag := udp
	frag.MessageBytes = 9000
	for _, c := range []struct {
		name string
		cell result.Cell
		mtu  int
		want float64
	}{
		{"tcp 1500", tcp, 1500, 1448.0 / 1514},
		{"tcp 9000", big, 9000, 8948.0 / 9014},
		{"tcp over ipv6", six, 1500, 1428.0 / 1514},
		{"tcp in vxlan", tcp, 1450, 1398.0 / 1514},
		{"udp 1472", udp, 1500, 1472.0 / 1514},
		{"udp 64", small, 1500, 64.0 / (64 + 42)},
		{"udp 64 in vxlan", small, 1450, 64.0 / (64 + 42 + 50)},
		{"udp 9000 in fragments", frag, 1500, 9000.0 / (9008 + 7*34)}, // 1480 bytes each
	} {
		got, ok := goodputShare(c.cell, c.mtu)
		if !ok {
			t.Errorf("%s: not known", c.name)
		}
		stattest.Near(t, c.name, got, c.want, 1e-12)
	}
	if _, ok := goodputShare(result.Cell{Workload: "redis", MTU: 1500}, 1500); ok {
		t.Error("redis has a known framing")
	}
}
