package fault

import (
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
)

// Request is what a Peer is asked.
type Request struct {
	ID     int64           `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Peer is the other end of a control connection: JSON lines over pipes. It answers some
// methods as it should and misbehaves with the others.
type Peer struct {
	// Stdin takes requests, Stdout has the answers. Kill closes both, as the end of a
	// process does.
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	sent atomic.Int64
}

// Kill ends the peer.
func (p *Peer) Kill() error { return errors.Join(p.Stdin.Close(), p.Stdout.Close()) }

// Sent is how many bytes of its answers were read so far.
func (p *Peer) Sent() int64 { return p.sent.Load() }

// NewPeer starts a peer that ends with the test. polite maps methods to their results; any
// other request goes to misbehave, in a goroutine of its own, with a func that writes to
// the answers until the peer is killed.
func NewPeer(t testing.TB, polite map[string]any, misbehave func(r Request, write func([]byte) error)) *Peer {
	t.Helper()
	answers := map[string]json.RawMessage{}
	for method, result := range polite {
		raw, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		answers[method] = raw
	}
	requests, stdin := io.Pipe()
	stdout, out := io.Pipe()
	p := &Peer{Stdin: stdin, Stdout: stdout}
	var one sync.Mutex
	write := func(b []byte) error {
		one.Lock()
		defer one.Unlock()
		n, err := out.Write(b)
		p.sent.Add(int64(n))
		return err
	}
	var writing sync.WaitGroup
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer writing.Wait()
		defer out.Close()
		in := json.NewDecoder(requests)
		for {
			var r Request
			if err := in.Decode(&r); err != nil {
				return
			}
			if result, ok := answers[r.Method]; ok {
				writing.Go(func() { _ = write(Answer(t, r.ID, result)) }) // it may be killed already
			} else {
				writing.Go(func() { misbehave(r, write) })
			}
		}
	}()
	t.Cleanup(func() {
		_ = p.Kill() // never fails (io.Pipe)
		<-over
	})
	return p
}

// Answer is the line that answers a request with a result.
func Answer(t testing.TB, id int64, result json.RawMessage) []byte {
	t.Helper()
	line, err := json.Marshal(struct {
		ID     int64           `json:"id"`
		Result json.RawMessage `json:"result"`
	}{id, result})
	if err != nil {
		t.Error(err)
	}
	return append(line, '\n')
}
