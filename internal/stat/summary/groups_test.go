package summary

import (
	"slices"
	"testing"
)

// Steps with a component in common are compared with it together.
func TestLadderGroups(t *testing.T) {
	of := func(names ...string) LadderStep { return LadderStep{components: names} }
	got := grouped([]LadderStep{of("veth"), of("netfilter"), of("bridge"), of("encapsulation", "netfilter"), of("encapsulation")})
	if len(got) != 3 || !slices.Equal(got[1], []int{1, 3, 4}) || !slices.Equal(got[2], []int{2}) {
		t.Errorf("groups %v", got)
	}
}
