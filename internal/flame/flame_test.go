package flame

import (
	"bytes"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"

	"github.com/cnibench/cnibench/internal/result"
)

func TestProfile(t *testing.T) {
	bridge := result.Cell{Network: "bridge", Path: "pod-to-pod", Placement: "inter-host", Link: "unshaped", MTU: 1500, Workload: "tcp_rr", MessageBytes: 64}
	host := bridge
	host.Network, host.Path = "host", "host-to-host"
	p := New()
	if !p.Empty() {
		t.Error("a new profile has stacks")
	}
	p.Add(bridge, result.Stack{Frames: []string{"do_syscall_64", "br_forward"}, Microseconds: 30})
	p.Add(bridge, result.Stack{Frames: []string{"do_syscall_64", "br_forward"}, Microseconds: 12})
	p.Add(host, result.Stack{Frames: []string{"do_syscall_64"}, Microseconds: 8})
	var folded bytes.Buffer
	if err := p.WriteFolded(&folded); err != nil {
		t.Fatal(err)
	}
	want := `bridge;tcp_rr 64 B (pod-to-pod inter-host, unshaped, MTU 1500);do_syscall_64;br_forward 42
host;tcp_rr 64 B (host-to-host inter-host, unshaped, MTU 1500);do_syscall_64 8
`
	if folded.String() != want {
		t.Errorf("got\n%swant\n%s", &folded, want)
	}
	var packed bytes.Buffer
	if err := p.WritePprof(&packed); err != nil {
		t.Fatal(err)
	}
	got, err := pprof.Parse(&packed)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, s := range got.Sample {
		sum += s.Value[0]
		if s.Label["network"][0] == "bridge" && (s.Location[0].Line[0].Function.Name != "br_forward" || len(s.Location) != 2) {
			t.Errorf("the innermost function is %v", s.Location[0].Line[0].Function.Name)
		}
	}
	if sum != 50_000 || len(got.Function) != 2 || !strings.HasPrefix(got.SampleType[0].Unit, "nano") {
		t.Errorf("%d ns in %d functions: %v", sum, len(got.Function), got)
	}
}
