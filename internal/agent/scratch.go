package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

const scratchPattern = "cnb-agent-*"

// scratch is this agent's own folder for the files of its tools, made when
// first needed. It holds a lock on it as long as it lives, so that anybody can
// tell the folder of an agent that was killed.
type scratch struct {
	mu  sync.Mutex
	dir *os.File
}

// folder makes a new folder inside.
func (s *scratch) folder() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == nil {
		path, err := os.MkdirTemp("", scratchPattern)
		if err != nil {
			return "", fmt.Errorf("scratch folder: %w", err)
		}
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("scratch folder: %w", err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return "", errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
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
func ClearScratch() ([]string, error) {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), scratchPattern))
	if err != nil {
		return nil, err
	}
	var cleared []string
	var errs error
	for _, path := range left {
		f, err := os.Open(path)
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			errs = errors.Join(errs, os.RemoveAll(path))
			cleared = append(cleared, path)
		}
		errs = errors.Join(errs, f.Close())
	}
	return cleared, errs
}
