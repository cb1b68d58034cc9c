package baremetal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/flock"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
)

// Machine is the machine that a lab is on, whose own settings a run may change
// where it was allowed to. The roles that change hosts change it; values from
// before are kept in a folder that its owner has locked, so that the next
// command puts back what a killed one left.
type Machine struct {
	player *player
	dir    *os.File
	now    string // the profile in force
	made   map[string][]result.Setting
}

// TakeMachine locks the machine's settings for this process. Another that has
// them is an error.
func TakeMachine(ctx context.Context, r *exec.Runner, dir string) (*Machine, error) {
	lock, err := lockMachine(dir)
	if err != nil {
		return nil, err
	}
	p, err := newPlayer(r)
	if err != nil {
		return nil, errors.Join(err, lock.Close(), os.Remove(dir))
	}
	m := &Machine{player: p, dir: lock, made: map[string][]result.Setting{}}
	if err := m.restore(ctx); err != nil {
		return nil, errors.Join(err, p.close(), lock.Close())
	}
	return m, nil
}

// RestoreMachine puts back what a killed owner left; false: there was nothing,
// or its owner lives.
func RestoreMachine(ctx context.Context, r *exec.Runner, dir string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, keptFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	m, err := TakeMachine(ctx, r, dir)
	if errors.Is(err, errMachineInUse) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("settings of this machine that a killed command changed are not put back: %w", err)
	}
	return true, m.Close(ctx)
}

var errMachineInUse = errors.New("another run changes the settings of this machine: wait for it to end")

// lockTries bounds how often lockMachine begins again, as each time another command removed
// the folder with the last of its values.
const lockTries = 10

// lockMachine makes and locks the folder of kept values, for its user alone: whoever may
// open it can lock it and keep everybody else out. A link, or another user's folder, is
// refused and stays as it is.
func lockMachine(dir string) (*os.File, error) {
	var err error
	for range lockTries {
		if err = os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			return nil, err
		}
		if err = os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		var f *os.File
		f, err = flock.Lock(dir, 0)
		switch {
		case errors.Is(err, flock.ErrHeld):
			return nil, errMachineInUse
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("settings of this machine: %w: remove it", err)
		}
		if err = f.Chmod(0o700); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
	return nil, err
}

// keptFile is where the module keeps the values from before.
const keptFile = "settings.json"

func (m *Machine) play(ctx context.Context, vars map[string]any) ([]record, error) {
	vars["state_file"] = filepath.Join(m.dir.Name(), keptFile)
	return m.player.play(ctx, "localhost,", "machine", vars, "")
}

// Use gives the machine those settings of a profile that are a whole machine's,
// puts those of others back, and says what became of each. The same profile
// again changes nothing.
func (m *Machine) Use(ctx context.Context, p profile.Profile) ([]result.Setting, error) {
	if m.now == p.Name {
		return m.made[p.Name], nil
	}
	whole, err := profile.Whole(p)
	if err != nil {
		return nil, err
	}
	if len(whole.Settings()) == 0 {
		if err := m.restore(ctx); err != nil {
			return nil, err
		}
		m.now = p.Name
		return nil, nil
	}
	m.now = "" // unknown where it fails half-way
	records, err := m.play(ctx, map[string]any{"state": "applied", "sysctls": whole.Sysctls, "tuned": whole.Tuned})
	if err != nil {
		return nil, fmt.Errorf("profile %s on this machine: %w", p.Name, err)
	}
	for _, r := range records {
		if r.Settings != nil {
			m.made[p.Name] = settingsOf(r)
		}
	}
	m.now = p.Name
	return m.made[p.Name], nil
}

// Made is what became of each profile that was used.
func (m *Machine) Made() map[string][]result.Setting { return m.made }

// restore puts everything back.
func (m *Machine) restore(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(m.dir.Name(), keptFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	m.now = ""
	_, err := m.play(ctx, map[string]any{"state": "restored"})
	return err
}

// Close puts everything back and gives the machine free.
func (m *Machine) Close(ctx context.Context) error {
	err := m.restore(context.WithoutCancel(ctx))
	if err == nil {
		if removeErr := os.Remove(m.dir.Name()); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = removeErr
		}
	}
	return errors.Join(err, m.dir.Close(), m.player.close())
}
