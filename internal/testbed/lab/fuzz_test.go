package lab

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

// fuzzLimit bounds an input, bytes.
const fuzzLimit = 64 << 10

// FuzzHost: whatever /proc and os-release say, the host's numbers are possible and its
// texts are one line each.
func FuzzHost(f *testing.F) {
	f.Add("MemTotal:       16303428 kB\n", "model name\t: A CPU @ 2 GHz\n", "PRETTY_NAME=\"Debian GNU/Linux 12\"\n")
	f.Add("MemTotal: -1 kB\n", "model name:\n", "PRETTY_NAME=")
	f.Add("MemTotal: 9223372036854775807 kB\n", "", "")
	proc := f.TempDir()
	f.Fuzz(func(t *testing.T, meminfo, cpuinfo, release string) {
		defer fuzzed.Within(t)()
		if len(meminfo)+len(cpuinfo)+len(release) > fuzzLimit {
			t.Skip("longer than the bound of this test")
		}
		for name, text := range map[string]string{"meminfo": meminfo, "cpuinfo": cpuinfo, "os-release": release} {
			if err := os.WriteFile(filepath.Join(proc, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h := readHost(proc, filepath.Join(proc, "os-release"))
		if h.MemoryBytes < 0 || h.MemoryBytes > math.MaxInt64/2 || len(h.OS)+len(h.CPUModel) > len(cpuinfo)+len(release) {
			t.Errorf("%+v", h)
		}
	})
}
