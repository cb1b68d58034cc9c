//go:build linux

package agent

import (
	"fmt"
	"sync"
)

// head keeps the first max bytes written to it and counts the rest.
type head struct {
	mu  sync.Mutex
	buf []byte
	cut int64
	max int
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	keep := min(len(p), h.max-len(h.buf))
	h.buf = append(h.buf, p[:keep]...)
	h.cut += int64(len(p) - keep)
	return len(p), nil
}

// String is what is kept, and a last line that says what is not.
func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cut > 0 {
		return fmt.Sprintf("%s\n[cnibench: %d more bytes were cut]\n", h.buf, h.cut)
	}
	return string(h.buf)
}
