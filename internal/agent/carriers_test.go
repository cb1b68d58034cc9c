package agent

import (
	"slices"
	"strings"
	"testing"
)

func TestCarriersComeThrough(t *testing.T) {
	for _, pids := range [][]int{nil, {7}, {12, 345}} {
		name, value, _ := strings.Cut(Carriers(pids), "=")
		got, err := readCarriers(value)
		if name != CarriersEnv || err != nil || !slices.Equal(got, pids) {
			t.Errorf("%v became %v (%v)", pids, got, err)
		}
	}
	for _, bad := range []string{"x", "-1", "1,0"} {
		if _, err := readCarriers(bad); err == nil || !strings.Contains(err.Error(), CarriersEnv) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
