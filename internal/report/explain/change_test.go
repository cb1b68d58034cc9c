package explain

import (
	"slices"
	"testing"
)

// What can be added to a network is among what else can be chosen.
func TestOtherChoicesHaveAccelerations(t *testing.T) {
	for _, want := range []string{"bridge+sockmap", "bridge+bigtcp", "bridge+netkit"} {
		if !slices.ContainsFunc(otherChoices("bridge"), func(o other) bool { return o.network == want && o.what != "" }) {
			t.Errorf("%s is not among %v", want, otherChoices("bridge"))
		}
	}
}
