package agent

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRoutes(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the fixture is of a little-endian machine")
	}
	const head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	file := filepath.Join(t.TempDir(), "route")
	for text, want := range map[string][]string{
		"eth0\t00000000\t0101F40A\t0003\t0\t0\t0\t00000000\t0\t0\t0\neth0\t0001F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n": {"0.0.0.0/0 via 10.244.1.1 dev eth0", "10.244.1.0/24 dev eth0"},
		"": nil,
		"cali0123456789a\t0301F40A\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0\n": {"10.244.1.3/32 dev cali*"},
	} {
		if err := os.WriteFile(file, []byte(head+text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := routes(file); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	for _, bad := range []string{"eth0 1\n", strings.Repeat("x ", 9) + "\n"} {
		if err := os.WriteFile(file, []byte(head+bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := routes(file); err == nil {
			t.Errorf("%q is taken for %q", bad, got)
		}
	}
	if got, err := routes(filepath.Join(t.TempDir(), "none")); got != nil || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
