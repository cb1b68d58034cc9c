package wire

import (
	"strings"
	"testing"
)

func TestLinksAreFoundByName(t *testing.T) {
	for _, l := range Links() {
		if got, err := Find(l.Name); err != nil || got != l || l.Summary == "" {
			t.Errorf("%s: %+v (%v)", l.Name, got, err)
		}
	}
	if _, err := Find("token-ring"); err == nil || !strings.Contains(err.Error(), "it has unshaped, 1-gigabit") {
		t.Errorf("error %v", err)
	}
}
