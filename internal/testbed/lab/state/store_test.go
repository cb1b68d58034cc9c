package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/flock"
)

func testStore(t *testing.T) Store {
	t.Helper()
	return Store{Dir: filepath.Join(t.TempDir(), "state")}
}

func TestALabIsHeldByItsOwner(t *testing.T) {
	s := testStore(t)
	st := State{Schema: 1, ID: "aaaaaa", PID: os.Getpid(), Verb: "run"}
	h, err := s.Create(st)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(st); err == nil {
		t.Error("a second lab of that name gives no error")
	}
	if _, err := s.Take(st.ID); !errors.Is(err, ErrInUse) {
		t.Errorf("taken from a living owner: %v", err)
	}
	st.Kept = true
	if err := h.Save(st); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(st.ID); err != nil || !got.Kept || got.Verb != "run" {
		t.Errorf("read %+v (%v)", got, err)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := s.Take(st.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("the store is left behind the last lab: %v", err)
	}
	if _, err := s.Take(st.ID); !os.IsNotExist(err) {
		t.Errorf("a lab that is gone: %v", err)
	}
}

// A program between fork and exec has its killed owner's lock for a moment.
func TestTheLockOfADeadOwnerIsWaitedFor(t *testing.T) {
	s := testStore(t)
	st := State{Schema: 1, ID: "bbbbbb", PID: 1 << 30} // no such process
	h, err := s.Create(st)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(h.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = unix.Close(fd) })
	again, err := s.Take(st.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Remove(); err != nil {
		t.Error(err)
	}
}

func TestAStateThatCannotBeReadIsAnError(t *testing.T) {
	s := testStore(t)
	dir := filepath.Join(s.Dir, "cccccc")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read("cccccc"); !os.IsNotExist(err) {
		t.Errorf("without a state: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read("cccccc"); err == nil || !strings.Contains(err.Error(), "state of lab cccccc") {
		t.Errorf("with a torn one: %v", err)
	}
}

// Any user could open the folders, and with a lock on one block every command of
// root.
func TestTheStoreIsItsUsersAlone(t *testing.T) {
	s := testStore(t)
	h, err := s.Create(State{Schema: 1, ID: "dddddd", PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{s.Dir, h.Path} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: mode %v (%v), want 0700", dir, info.Mode(), err)
		}
	}
	other, err := flock.Lock(s.Dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.wait = 20 * time.Millisecond
	err = s.locked(func() error { return nil })
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("locked by process %d (", os.Getpid())) {
		t.Errorf("while another has the store: %v, want its holder", err)
	}
	if err := errors.Join(other.Close(), h.Remove()); err != nil {
		t.Error(err)
	}
}

func TestAStoreThatIsALinkIsRefused(t *testing.T) {
	s := testStore(t)
	if err := os.Symlink(t.TempDir(), s.Dir); err != nil {
		t.Fatal(err)
	}
	if err := s.locked(func() error { return nil }); !errors.Is(err, flock.ErrForeign) {
		t.Errorf("%v", err)
	}
}
