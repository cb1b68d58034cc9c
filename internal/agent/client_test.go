package agent

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// liar is an agent that answers every request with what it likes.
func liar(t *testing.T, answer func(out io.Writer)) Transport {
	t.Helper()
	toAgent, stdin := io.Pipe()
	stdout, fromAgent := io.Pipe()
	go func() {
		one := make([]byte, 4096)
		for {
			if _, err := toAgent.Read(one); err != nil {
				_ = fromAgent.Close()
				return
			}
			answer(fromAgent)
		}
	}()
	kill := func() error { return errors.Join(stdin.Close(), stdout.Close()) }
	t.Cleanup(func() { _ = kill() })
	return Transport{Stdin: stdin, Stdout: stdout, Kill: kill}
}

// An answer without an end is held up to a bound, and its sample then fails.
func TestEndlessAnswerEndsTheAgent(t *testing.T) {
	sent := 0
	_, err := NewClient(t.Context(), liar(t, func(out io.Writer) {
		chunk := []byte(strings.Repeat("x", 1<<20))
		for {
			n, err := out.Write(chunk)
			sent += n
			if err != nil || sent > 1<<30 {
				return
			}
		}
	}))
	if !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "more than 32 MiB") {
		t.Errorf("error %.300v", err)
	}
	if sent > 2*maxLine {
		t.Errorf("%d bytes were taken", sent)
	}
}

func TestAgentsErrorsHoldNoEscapeSequences(t *testing.T) {
	_, err := NewClient(t.Context(), liar(t, func(out io.Writer) {
		_, _ = io.WriteString(out, `{"id":1,"error":"\u001b]0;owned\u0007"}`+"\n")
	}))
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\a") || !strings.Contains(err.Error(), `\x1b]0;owned\x07`) {
		t.Errorf("error %q", err)
	}
}
