package labtest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// skipper notes why a test was skipped, and lets it go on.
type skipper struct {
	testing.TB
	reason string
}

func (s *skipper) Helper() {}

func (s *skipper) Skip(args ...any) { s.reason = fmt.Sprint(args...) }

// TestTurn: a run with a turn has one part and names the run that has another; a run without
// one has all.
func TestTurn(t *testing.T) {
	for turn, want := range map[string]string{
		"":         "",
		"studies":  "",
		"clusters": "long: CNIBENCH_TURN=studies .ci/run has it, and make test",
	} {
		t.Setenv("CNIBENCH_TURN", turn)
		s := &skipper{TB: t}
		if Turn(s, Studies); s.reason != want || OfAnotherRun(s.reason) != (want != "") {
			t.Errorf("in turn %q: %q, want %q", turn, s.reason, want)
		}
	}
}

// TestEveryPartHasATurn: .ci/run has the parts that tests name.
func TestEveryPartHasATurn(t *testing.T) {
	script, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.NewReplacer("[", "turns=(", "]", ")\n").Replace(fmt.Sprint(parts())); !strings.Contains(string(script), want) {
		t.Errorf(".ci/run has no %s", want)
	}
}
