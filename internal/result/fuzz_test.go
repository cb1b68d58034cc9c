package result

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
	"github.com/cnibench/cnibench/internal/plain"
)

// fuzzLimit bounds an input, bytes: parsers here hold a file as a whole.
const fuzzLimit = 64 << 10

// FuzzDecodeSample: a line that is taken is a valid record without control characters,
// and what this program writes of it is taken as the same record.
func FuzzDecodeSample(f *testing.F) {
	f.Add([]byte(`{"schema":1}`))
	whole, err := json.Marshal(sample("b01-c000"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(bytes.Replace(whole, []byte(`"metrics"`), []byte(`"warnings":["a\rb","\b\f"],"metrics"`), 1))
	f.Fuzz(func(t *testing.T, line []byte) {
		defer fuzzed.Within(t)()
		if len(line) > fuzzLimit {
			t.Skip("longer than the bound of this test")
		}
		s, err := newDecoder().sample(line)
		if err != nil {
			return
		}
		if s.Validate() != nil {
			t.Error("an invalid record was read")
		}
		var room Sample
		if !isClean(t, &s, &room) {
			t.Errorf("control characters in %+v", s)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		back, err := newDecoder().sample(text)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v: %s", err, text)
		}
		if twice, err := json.Marshal(back); err != nil || !bytes.Equal(text, twice) {
			t.Errorf("%s became %s (%v)", text, twice, err)
		}
	})
}

// isClean reports whether plain.Clean changes nothing; room is for a copy of v.
func isClean[T any](t *testing.T, v, room *T) bool {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, room)
	}
	if err != nil {
		t.Fatal(err)
	}
	plain.Clean(room)
	after, err := json.Marshal(room)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(text, after)
}

// FuzzEnvironment: an environment.json that is taken holds no control characters, and
// what this program writes of it is read as the same.
func FuzzEnvironment(f *testing.F) {
	f.Add([]byte(`{"schema":1,"testbed":"lab","tools":{"iperf3":"3.12\u001b[2J"},"host":{"kernel":"6.1\r"}}`))
	f.Add([]byte(`{"schema":2,"places":[{}],"networks":{"bridge":{}}}`))
	f.Add([]byte(`{"schema":1000}`))
	f.Add([]byte(`null`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzed.Within(t)()
		if len(data) > fuzzLimit {
			t.Skip("longer than the bound of this test")
		}
		env := environmentOf(t, dir, data)
		if env == nil {
			return
		}
		var room Environment
		if env.Schema > Schema || !isClean(t, env, &room) {
			t.Errorf("taken: %+v", env)
		}
		text, err := json.Marshal(env)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again := environmentOf(t, dir, text)
		if again == nil {
			t.Fatalf("what was written cannot be read: %s", text)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(text, twice) {
			t.Errorf("%s became %s (%v)", text, twice, err)
		}
	})
}

// environmentOf is ReadEnvironment of a file with this text; nil where it is refused.
func environmentOf(t *testing.T, dir string, text []byte) *Environment {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, EnvironmentFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	env, err := ReadEnvironment(dir)
	if err != nil {
		return nil
	}
	return env
}

// FuzzSamples: of a samples.jsonl either every record up to the torn end is given, in its
// order, or the error names a line of the file.
func FuzzSamples(f *testing.F) {
	whole, err := json.Marshal(sample("b01-c000"))
	if err != nil {
		f.Fatal(err)
	}
	line := string(whole) + "\n"
	f.Add(line + line)
	f.Add(line + string(whole[:40]))
	f.Add(line + "\x00\x00\n")
	f.Add("{}\n" + line)
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzed.Within(t)()
		if len(text) > fuzzLimit {
			t.Skip("longer than the bound of this test")
		}
		var got []Sample
		end, err := eachSample(strings.NewReader(text), "samples.jsonl", func(s *Sample) { got = append(got, *s) })
		if err != nil {
			if !strings.HasPrefix(err.Error(), "samples.jsonl:") {
				t.Errorf("no place: %v", err)
			}
			return
		}
		if end < 0 || end > int64(len(text)) || strings.Count(text[:end], "\n") != len(got) {
			t.Fatalf("%d records in %d of %d bytes", len(got), end, len(text))
		}
		d := newDecoder()
		for i, l := range strings.SplitAfter(text[:end], "\n")[:len(got)] {
			if s, err := d.sample([]byte(l)); err != nil || !reflect.DeepEqual(s, got[i]) {
				t.Errorf("record %d: %+v (%v), read as %+v", i, s, err, got[i])
			}
		}
	})
}
