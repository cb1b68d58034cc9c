package lab

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

func testStore(t *testing.T) store {
	t.Helper()
	return store{dir: filepath.Join(t.TempDir(), "state")}
}

func TestALabIsHeldByItsOwner(t *testing.T) {
	s := testStore(t)
	st := state{Schema: 1, ID: "aaaaaa", PID: os.Getpid(), Verb: "run"}
	h, err := s.create(st)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.create(st); err == nil {
		t.Error("a second lab of that name gives no error")
	}
	if _, err := s.take(st.ID); !errors.Is(err, errInUse) {
		t.Errorf("taken from a living owner: %v", err)
	}
	st.Kept = true
	if err := h.save(st); err != nil {
		t.Fatal(err)
	}
	if got, err := s.read(st.ID); err != nil || !got.Kept || got.Verb != "run" {
		t.Errorf("read %+v (%v)", got, err)
	}
	if err := h.release(); err != nil {
		t.Fatal(err)
	}
	again, err := s.take(st.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("the store is left behind the last lab: %v", err)
	}
	if _, err := s.take(st.ID); !os.IsNotExist(err) {
		t.Errorf("a lab that is gone: %v", err)
	}
}

// A program between fork and exec has its killed owner's lock for a moment.
func TestTheLockOfADeadOwnerIsWaitedFor(t *testing.T) {
	s := testStore(t)
	st := state{Schema: 1, ID: "bbbbbb", PID: 1 << 30} // no such process
	h, err := s.create(st)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(h.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.release(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = unix.Close(fd) })
	again, err := s.take(st.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.remove(); err != nil {
		t.Error(err)
	}
}

func TestAStateThatCannotBeReadIsAnError(t *testing.T) {
	s := testStore(t)
	dir := filepath.Join(s.dir, "cccccc")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.read("cccccc"); !os.IsNotExist(err) {
		t.Errorf("without a state: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.read("cccccc"); err == nil || !strings.Contains(err.Error(), "state of lab cccccc") {
		t.Errorf("with a torn one: %v", err)
	}
}

// Any user could open the folders, and with a lock on one block every command of
// root.
func TestTheStoreIsItsUsersAlone(t *testing.T) {
	s := testStore(t)
	h, err := s.create(state{Schema: 1, ID: "dddddd", PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{s.dir, h.path} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: mode %v (%v), want 0700", dir, info.Mode(), err)
		}
	}
	other, err := flock.Lock(s.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.wait = 20 * time.Millisecond
	err = s.locked(func() error { return nil })
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("locked by process %d (", os.Getpid())) {
		t.Errorf("while another has the store: %v, want its holder", err)
	}
	if err := errors.Join(other.Close(), h.remove()); err != nil {
		t.Error(err)
	}
}

func TestAStoreThatIsALinkIsRefused(t *testing.T) {
	s := testStore(t)
	if err := os.Symlink(t.TempDir(), s.dir); err != nil {
		t.Fatal(err)
	}
	if err := s.locked(func() error { return nil }); !errors.Is(err, flock.ErrForeign) {
		t.Errorf("%v", err)
	}
}
