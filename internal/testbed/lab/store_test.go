package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func testStore(t *testing.T) store {
	t.Helper()
	return store{filepath.Join(t.TempDir(), "state")}
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
