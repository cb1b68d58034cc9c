package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
	"github.com/cnibench/cnibench/internal/workload"
)

// fuzzLimit bounds an input, bytes.
const fuzzLimit = 64 << 10

// FuzzAnswers: whatever an agent sends, each call of the controller returns, and its error
// can be shown in a terminal.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"id":1,"result":{"protocol":2,"version":"1.0","pid":7}}` + "\n"))
	f.Add([]byte(`{"id":1,"result":{"protocol":2}}` + "\n" + `{"id":2,"error":"\u001b[2J"}` + "\n"))
	f.Add([]byte(`{"id":1,"result":{"protocol":2,"version":"\u001b[2J"}}` + "\n" + `{"id":2,"result":{"kernel":7}}` + "\n"))
	f.Add([]byte("\n\x1b[2J\n"))
	f.Add([]byte(`{"id":1}` + "\n" + `{"id":1}` + "\n" + `{"id":-1}`))
	f.Fuzz(func(t *testing.T, said []byte) {
		defer fuzzed.Within(t)()
		if len(said) > fuzzLimit {
			t.Skip("longer than the bound of this test")
		}
		toAgent, stdin := io.Pipe()
		defer stdin.Close()
		go func() { _, _ = io.Copy(io.Discard, toAgent) }() // ends with stdin
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c, err := NewClient(ctx, Transport{Stdin: stdin, Stdout: bytes.NewReader(said)})
		if err == nil {
			if strings.ContainsFunc(c.Version(), unicode.IsControl) {
				t.Errorf("version %q", c.Version())
			}
			var facts Facts
			err = c.Call(ctx, MethodFacts, struct{}{}, &facts)
			<-c.done // said has ended
			if again := c.Call(ctx, MethodFacts, struct{}{}, nil); again == nil {
				t.Error("an agent that is gone answers")
			}
		}
		if ctx.Err() != nil {
			t.Errorf("a call did not return: %v", err)
		}
		if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Errorf("%q", err)
		}
	})
}

// FuzzReadLine: the lines of an answer are those that were sent.
func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\n\nb"))
	f.Add(bytes.Repeat([]byte("x"), 100))
	f.Fuzz(func(t *testing.T, said []byte) {
		defer fuzzed.Within(t)()
		if len(said) > fuzzLimit {
			t.Skip("longer than the bound of this test")
		}
		in := bufio.NewReaderSize(bytes.NewReader(said), 16)
		var all []byte
		for {
			line, err := readLine(in, maxLine)
			all = append(all, line...)
			if err != nil {
				break
			}
			if bytes.IndexByte(line, '\n') != len(line)-1 {
				t.Errorf("%q is no line", line)
			}
		}
		if !bytes.Equal(all, said) {
			t.Errorf("%q became %q", said, all)
		}
	})
}

// harmless are the methods that start no program and open no port.
func harmless(method string) bool {
	return !slices.Contains([]string{MethodServe, MethodDrive, MethodOpen, MethodTools, MethodIdle, MethodFacts}, method)
}

// FuzzRequests: an agent answers each line with one line that is a response to its id,
// whatever the line is.
func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"id":1,"method":"hello","params":{"protocol":2}}`))
	f.Add([]byte(`{"id":2,"method":"clock"}`))
	f.Add([]byte(`{"id":3,"method":"slices","params":{"session":"s1","turns":[{}]}}`))
	f.Add([]byte(`{"id":4,"method":"finish","params":{"session":""}}`))
	f.Add([]byte(`{"id":5,"method":"cancel"}`))
	f.Add([]byte(`{"id":6,"method":"wait","params":7}`))
	f.Add([]byte(`{"id":"x"}`))
	runner := exec.NewRunner()
	f.Cleanup(runner.Close)
	f.Fuzz(func(t *testing.T, line []byte) {
		defer fuzzed.Within(t)()
		var req Request
		err := json.Unmarshal(line, &req)
		if len(line) > fuzzLimit || err == nil && !harmless(req.Method) {
			t.Skip("longer than the bound of this test, or it would start a program")
		}
		answers := make(chan []byte, 2)
		s := &server{runner: runner, scratch: &scratch{}, out: into(answers), versions: map[string]string{}}
		s.fresh()
		s.accept(line)
		var r Response
		select {
		case got := <-answers:
			if bytes.IndexByte(got, '\n') != len(got)-1 {
				t.Fatalf("%q is no line", got)
			}
			if err := json.Unmarshal(got, &r); err != nil {
				t.Fatalf("%q: %v", got, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no answer")
		}
		if err != nil && r.Error == "" || err == nil && r.ID != req.ID {
			t.Errorf("%q was answered with %+v", line, r)
		}
		if err := s.cancelAll(); err != nil || len(answers) > 0 {
			t.Errorf("afterwards: %v, %d more answers", err, len(answers))
		}
	})
}

// into is a writer that hands on copies of what is written.
type into chan<- []byte

func (c into) Write(p []byte) (int, error) { c <- bytes.Clone(p); return len(p), nil }

// FuzzOutput: an output that an agent sends is read as what it was when written again.
func FuzzOutput(f *testing.F) {
	f.Add([]byte(`{"stdout":"x","exit_code":1}`))
	f.Fuzz(func(t *testing.T, result []byte) {
		defer fuzzed.Within(t)()
		if len(result) > fuzzLimit {
			t.Skip("longer than the bound of this test")
		}
		var out, back workload.Output
		if decode(Response{Result: result}, MethodFinish, &out) != nil {
			return
		}
		text, err := json.Marshal(out)
		if err != nil {
			t.Fatalf("%q cannot be written: %v", result, err)
		}
		if len(text) > 64*(len(result)+fuzzLimit) || decode(Response{Result: text}, MethodFinish, &back) != nil {
			t.Fatalf("%q became %q", result, text)
		}
		if twice, err := json.Marshal(back); err != nil || !bytes.Equal(text, twice) {
			t.Errorf("%q became %q (%v)", text, twice, err)
		}
	})
}

// FuzzCarriers: process numbers are positive, and the variable made of them reads the same.
func FuzzCarriers(f *testing.F) {
	f.Add("1,2,3")
	f.Add("-1")
	f.Add(",,")
	f.Fuzz(func(t *testing.T, value string) {
		defer fuzzed.Within(t)()
		pids, err := readCarriers(value)
		if err != nil {
			return
		}
		again, err := readCarriers(strings.TrimPrefix(Carriers(pids), CarriersEnv+"="))
		if err != nil || !slices.Equal(again, pids) || len(pids) > 0 && slices.Min(pids) < 1 {
			t.Errorf("%q became %v, then %v (%v)", value, pids, again, err)
		}
	})
}
