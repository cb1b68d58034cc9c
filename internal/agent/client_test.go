package agent

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cnibench/cnibench/internal/fault"
)

// liar is an agent that answers every request with what it likes.
func liar(t *testing.T, answer func(write func([]byte) error)) Transport {
	t.Helper()
	p := fault.NewPeer(t, nil, func(_ fault.Request, write func([]byte) error) { answer(write) })
	return Transport{Stdin: p.Stdin, Stdout: p.Stdout, Kill: p.Kill}
}

// An answer without an end is held up to a bound, and its sample then fails.
func TestEndlessAnswerEndsTheAgent(t *testing.T) {
	var sent atomic.Int64
	_, err := NewClient(t.Context(), liar(t, func(write func([]byte) error) {
		chunk := []byte(strings.Repeat("x", 1<<20))
		for sent.Load() < 1<<30 && write(chunk) == nil {
			sent.Add(int64(len(chunk)))
		}
	}))
	if !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "more than 32 MiB") {
		t.Errorf("error %.300v", err)
	}
	if sent.Load() > 2*maxLine {
		t.Errorf("%d bytes were taken", sent.Load())
	}
}

func TestAgentsErrorsHoldNoEscapeSequences(t *testing.T) {
	_, err := NewClient(t.Context(), liar(t, func(write func([]byte) error) {
		_ = write([]byte(`{"id":1,"error":"\u001b]0;owned\u0007"}` + "\n"))
	}))
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\a") || !strings.Contains(err.Error(), `\x1b]0;owned\x07`) {
		t.Errorf("error %q", err)
	}
}

// What an agent says of an error becomes the reason of a record.
func TestAgentsErrorsAreShort(t *testing.T) {
	_, err := NewClient(t.Context(), liar(t, func(write func([]byte) error) {
		_ = write([]byte(`{"id":1,"error":"` + strings.Repeat("é", 1<<20) + `"}` + "\n"))
	}))
	if err == nil || len(err.Error()) > 2*maxReason || !strings.Contains(err.Error(), "é …") {
		t.Errorf("an error of %d bytes: %.100v", len(err.Error()), err)
	}
}

// endless is the input of an agent whose controller never ends its line. It gives up at
// a size that no agent should take.
type endless struct{ taken int }

func (e *endless) Read(p []byte) (int, error) {
	if e.taken > 32*maxRequest {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = 'x'
	}
	e.taken += len(p)
	return len(p), nil
}

// A request without an end is read up to a bound, and ends the agent.
func TestEndlessRequestEndsTheAgent(t *testing.T) {
	in := &endless{}
	if status := Serve(t.Context(), in, io.Discard); status != 1 {
		t.Errorf("status %d, want 1", status)
	}
	if in.taken > 2*maxRequest {
		t.Errorf("%d bytes of one request were read", in.taken)
	}
}
