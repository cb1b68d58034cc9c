package state

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

// fuzzLimit bounds an input, bytes.
const fuzzLimit = 64 << 10

// A state that names another lab would have the namespaces of that one removed.
func TestAStateOfAnotherLabIsRefused(t *testing.T) {
	for name, text := range map[string]string{"another": `{"schema":1,"id":"eeeeee"}`, "none": `{"schema":1,"id":""}`} {
		s := testStore(t)
		writeState(t, s, "ffffff", []byte(text))
		st, err := s.Read("ffffff")
		if err == nil || st.ID != "ffffff" || st.PID != 0 {
			t.Errorf("%s: read %+v (%v)", name, st, err)
		}
	}
}

func writeState(t *testing.T, s Store, id string, text []byte) {
	t.Helper()
	dir := filepath.Join(s.Dir, id)
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
	s := Store{Dir: f.TempDir()}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzzed.Within(t)()
		if len(text) > fuzzLimit {
			t.Skip("longer than the bound of this test")
		}
		writeState(t, s, id, text)
		st, err := s.Read(id)
		if st.ID != id || st.Prefix() != "cnb-aaaaaa-" {
			t.Fatalf("of %s it would remove %s…", id, st.Prefix())
		}
		if err != nil {
			return
		}
		again, err := json.Marshal(st)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		writeState(t, s, id, again)
		back, err := s.Read(id)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		// Not the values themselves: an empty list is written as none.
		if third, err := json.Marshal(back); err != nil || !bytes.Equal(third, again) {
			t.Errorf("%s became %s (%v)", again, third, err)
		}
	})
}
