package netns

import "testing"

func TestParseCounts(t *testing.T) {
	const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       2    0    0    0     0          0         0      100       2    0    0    0     0       0          0
  eth0: 1500000    1000    0    0    0     0          0         0   660000     750    0    0    0     0       0          0
`
	if c, err := parseCounts(text, "eth0"); err != nil || c[1] != 1000 || c[8] != 660_000 || c[9] != 750 {
		t.Errorf("%d (%v)", c, err)
	}
	for _, bad := range []string{"eth", "eth1"} {
		if _, err := parseCounts(text, bad); err == nil {
			t.Errorf("%s has packets", bad)
		}
	}
	if _, err := parseCounts("eth0: 1 2 3\n", "eth0"); err == nil {
		t.Error("a short line has packets")
	}
}
