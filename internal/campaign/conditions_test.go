package campaign

import (
	"slices"
	"strings"
	"testing"
)

const streams = "name: c\nnetworks: [host]\nworkloads: [{name: tcp_stream}, {name: tcp_stream, cpus: [apart], congestion_control: [reno]}]\n"

// What a file leaves open follows the testbed; what it says stays.
func TestConditionsFollowTheTestbed(t *testing.T) {
	c, err := Parse("c.yaml", []byte(streams), testKnown())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name            string
		c               Campaign
		cpus, algorithm string
	}{
		{"lab", c, "same", "cubic"},
		{"hosts", c.On(Hosts, testKnown()), "free", "as-is"},
		{"back to the lab", c.On(Hosts, testKnown()).On(Lab, testKnown()), "same", "cubic"},
		{"before conditions", c.Uncontrolled(), "free", "as-is"},
	} {
		open, said := tt.c.Workloads[0], tt.c.Workloads[1]
		if !slices.Equal(open.texts("cpus"), []string{tt.cpus}) || !slices.Equal(open.texts("congestion_control"), []string{tt.algorithm}) {
			t.Errorf("%s: %v", tt.name, open.Values)
		}
		if !slices.Equal(said.texts("cpus"), []string{"apart"}) || !slices.Equal(said.texts("congestion_control"), []string{"reno"}) {
			t.Errorf("%s: what the file says became %v", tt.name, said.Values)
		}
	}
	if s := c.Uncontrolled().Sampling; s.SliceSeconds != 0 || s.ExplainSeconds != 0 {
		t.Errorf("before conditions there were no slices: %+v", s)
	}
}

func TestConditionsThatMakeNoSense(t *testing.T) {
	known := testKnown()
	for i := range known.Workloads {
		if known.Workloads[i].Name == "plain" {
			known.Workloads[i].Factors = []string{"cpus", "congestion_control"}
		}
	}
	for _, tt := range []struct{ file, want string }{
		{"name: c\ntestbed: hosts\nnetworks: [host]\npaths: [{from: host, to: host}]\nworkloads: [{name: tcp_stream, cpus: [same]}]\n", "no CPU in common"},
		{"name: c\ntestbed: hosts\nnetworks: [host]\npaths: [{from: host, to: host}]\nworkloads: [{name: plain, congestion_control: [cubic]}]\n", "cannot set its congestion control"},
		{"name: c\nnetworks: [host]\nworkloads: [{name: tcp_stream, cpus: [same], pin_cpus: [true]}]\n", "both place the ends"},
		{"name: c\nnetworks: [host]\nworkloads: [{name: tcp_stream, congestion_control: [\"cubic; rm\"]}]\n", "congestion control"},
		{"name: c\nnetworks: [host]\nworkloads: [{name: tcp_stream, cpus: [together]}]\n", "placement on CPUs"},
	} {
		if _, err := Parse("c.yaml", []byte(tt.file), known); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.file, err, tt.want)
		}
	}
}
