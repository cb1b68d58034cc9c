package podman

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestMissingNetavark(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := netavarkIn(t.TempDir()); err == nil || err.Error() != "netavark is not installed: apt-get install netavark" {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "netavark"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := netavarkIn(t.TempDir(), dir); err != nil || got != filepath.Join(dir, "netavark") {
		t.Errorf("found %s (%v)", got, err)
	}
	var said netavarkError
	if err := json.Unmarshal([]byte(`{"error":"no such bridge"}`), &said); err != nil {
		t.Fatal(err)
	}
	if got := said.wrap("setup", errors.New("exit status 1")).Error(); got != "netavark setup: no such bridge" {
		t.Errorf("%s", got)
	}
}
