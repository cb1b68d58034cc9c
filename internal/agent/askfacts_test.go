package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/probe"
)

// TestFactsAreChecked: what this machine answers is taken as it is; what no machine has is
// refused, and what could steer a terminal is not kept.
func TestFactsAreChecked(t *testing.T) {
	here, err := facts(probe.Roots{Proc: "/proc", Sys: "/sys"})
	if err != nil {
		t.Fatal(err)
	}
	same, err := here.checked()
	if diff := cmp.Diff(here, same); err != nil || diff != "" {
		t.Errorf("this machine's own facts: %v\n%s", err, diff)
	}
	good := func() Facts { return Facts{Kernel: "6.1.0-18-amd64", MTUs: map[string]int{"eth0": 1500}} }
	for want, change := range map[string]func(*Facts){
		"kernel release": func(f *Facts) { f.Kernel = "{{ lookup('pipe', 'id') }}" },
		"an MTU of -1":   func(f *Facts) { f.MTUs["eth0"] = -1 },
		"the address":    func(f *Facts) { f.Addresses = map[string]string{"$(id)": "eth0"} },
		"of the name":    func(f *Facts) { f.Sysctls = map[string]string{"{{ a }}": "1"} },
	} {
		f := good()
		change(&f)
		if _, err := f.checked(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	f := good()
	f.Hostname, f.Offloads, f.Routes = "a\x1b[2J", map[string]string{"eth0\x1b gro": "on\n"}, []string{"default\x1b"}
	f, err = f.checked()
	if err != nil || f.Hostname != "a?[2J" || f.Offloads["eth0? gro"] != "on?" || f.Routes[0] != "default?" {
		t.Errorf("%+v, %v", f, err)
	}
}
