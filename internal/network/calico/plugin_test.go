package calico

import (
	"strings"
	"testing"
)

func TestCalicoDeviceNames(t *testing.T) {
	a, b := hostDevice("cnb-1-node1-pod1"), hostDevice("cnb-1-node1-pod2")
	if len(a) != 15 || !strings.HasPrefix(a, "cali") || a == b {
		t.Errorf("names %s and %s", a, b)
	}
}
