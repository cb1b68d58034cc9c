package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/cnibench/cnibench/internal/flock"
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
		dir, err := lockedTemp()
		if err != nil {
			return "", fmt.Errorf("scratch folder: %w", err)
		}
		s.dir = dir
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

// lockedTemp makes a folder and locks it. Before the lock another command may take
// it for one that was left behind, and remove it: then the next is made.
func lockedTemp() (*os.File, error) {
	for {
		path, err := os.MkdirTemp("", scratchPattern)
		if err != nil {
			return nil, err
		}
		dir, err := flock.Lock(path, 0)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, flock.ErrHeld) {
			continue
		}
		return dir, err
	}
}

// ClearScratch removes the scratch folders that killed agents left in the
// system's folder for temporary files, and names them. What others put there under
// such a name is left alone, whatever it is.
func ClearScratch() ([]string, error) {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), scratchPattern))
	if err != nil {
		return nil, err
	}
	var cleared []string
	var errs error
	for _, path := range left {
		f, err := flock.Lock(path, 0)
		if errors.Is(err, flock.ErrHeld) || errors.Is(err, flock.ErrForeign) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		errs = errors.Join(errs, os.RemoveAll(path), f.Close())
		cleared = append(cleared, path)
	}
	return cleared, errs
}
