package lab

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// fuzzLimit bounds an input, bytes.
const fuzzLimit = 64 << 10

// A state that names another lab would have the namespaces of that one removed.
func TestAStateOfAnotherLabIsRefused(t *testing.T) {
	for name, text := range map[string]string{"another": `{"schema":1,"id":"eeeeee"}`, "none": `{"schema":1,"id":""}`} {
		s := testStore(t)
		writeState(t, s, "ffffff", []byte(text))
		st, err := s.read("ffffff")
		if err == nil || st.ID != "ffffff" || st.PID != 0 {
			t.Errorf("%s: read %+v (%v)", name, st, err)
		}
	}
}

func writeState(t *testing.T, s store, id string, text []byte) {
	t.Helper()
	dir := filepath.Join(s.dir, id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// FuzzState: whatever a state file holds, what is removed by it has the lab's own name,
// and a state that is taken is read again as it was.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"schema":1,"id":"aaaaaa","pid":1,"verb":"run","clusters":[{"spec":{},"conflists":[{}]}]}`))
	f.Add([]byte(`{"schema":1,"id":"aaaaaa","kubernetes":{"name":"k","nodes":2,"programs":[{"pid":7}]}}`))
	f.Add([]byte(`{"id":"bbbbbb"}`))
	f.Add([]byte(`null`))
	const id = "aaaaaa"
	s := store{dir: f.TempDir()}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > fuzzLimit {
			t.Skip("longer than the bound of this test")
		}
		writeState(t, s, id, text)
		st, err := s.read(id)
		if st.ID != id || st.prefix() != "cnb-aaaaaa-" {
			t.Fatalf("of %s it would remove %s…", id, st.prefix())
		}
		if err != nil {
			return
		}
		again, err := json.Marshal(st)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		writeState(t, s, id, again)
		back, err := s.read(id)
		if err != nil || back.PID != st.PID || back.Kept != st.Kept || len(back.Clusters) != len(st.Clusters) || !reflect.DeepEqual(back.Kubernetes, st.Kubernetes) {
			t.Errorf("%+v became %+v (%v)", st, back, err)
		}
	})
}

// FuzzHost: whatever /proc and os-release say, the host's numbers are possible and its
// texts are one line each.
func FuzzHost(f *testing.F) {
	f.Add("MemTotal:       16303428 kB\n", "model name\t: A CPU @ 2 GHz\n", "PRETTY_NAME=\"Debian GNU/Linux 12\"\n")
	f.Add("MemTotal: -1 kB\n", "model name:\n", "PRETTY_NAME=")
	f.Add("MemTotal: 9223372036854775807 kB\n", "", "")
	proc := f.TempDir()
	f.Fuzz(func(t *testing.T, meminfo, cpuinfo, release string) {
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
