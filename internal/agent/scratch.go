//go:build linux

package agent

import (
	"errors"
	"fmt"
	"os"
	"sync"

	scratchfolder "github.com/cnibench/cnibench/internal/scratch"
)

const scratchPattern = "cnb-agent-*"

// scratch is this agent's own folder for the files of its tools, made when
// first needed. It holds a lock on it as long as it lives, so that anybody can
// recognise the folder of an agent that was killed.
type scratch struct {
	mu  sync.Mutex
	dir *os.File
}

// folder makes a new folder inside.
func (s *scratch) folder() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == nil {
		f, err := scratchfolder.Make(scratchPattern)
		if err != nil {
			return "", err
		}
		s.dir = f
	}
	dir, err := os.MkdirTemp(s.dir.Name(), "run-*")
	if err != nil {
		return "", fmt.Errorf("scratch folder: %w", err)
	}
	return dir, nil
}

func (s *scratch) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == nil {
		return nil
	}
	return errors.Join(os.RemoveAll(s.dir.Name()), s.dir.Close())
}

// ClearScratch removes the scratch folders that killed agents left in the
// system's folder for temporary files, and names them.
func ClearScratch() ([]string, error) { return scratchfolder.Clear(scratchPattern) }
