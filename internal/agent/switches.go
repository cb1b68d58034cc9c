package agent

import (
	"context"
	"sync"
)

// switches counts how often the driving half that runs was answered by another server than
// before.
type switches struct {
	mu   sync.Mutex
	n    int
	more chan struct{} // closed and replaced when n changes; nil where nobody waits
}

// reset begins to count for another half.
func (s *switches) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n = 0
}

// add counts one, in the thread that measures.
func (s *switches) add() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if s.more != nil {
		close(s.more)
		s.more = nil
	}
}

// wait returns when at least count were counted, or ctx ends.
func (s *switches) wait(ctx context.Context, count int) error {
	for {
		s.mu.Lock()
		if s.n >= count {
			s.mu.Unlock()
			return nil
		}
		if s.more == nil {
			s.more = make(chan struct{})
		}
		more := s.more
		s.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
