package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/network"
)

// nodeWithImage is a node whose containers have their image.
func nodeWithImage(t *testing.T) network.Node {
	t.Helper()
	self := network.Node{DataDir: t.TempDir()}
	if err := makeImage(t.Context(), self, nil); err != nil {
		t.Fatal(err)
	}
	return self
}

// TestImageIsThisMachines: it has this machine's folders, empty, and links, and no files.
func TestImageIsThisMachines(t *testing.T) {
	self := nodeWithImage(t)
	entries, err := os.ReadDir("/")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		is := filepath.Join(image(self), e.Name())
		switch info, err := os.Lstat(is); {
		case e.Type()&os.ModeSymlink != 0:
			want, err1 := os.Readlink(filepath.Join("/", e.Name()))
			if got, err2 := os.Readlink(is); err1 != nil || err2 != nil || got != want {
				t.Errorf("%s leads to %q, want %q (%v, %v)", is, got, want, err1, err2)
			}
		case e.IsDir():
			if within, err := os.ReadDir(is); err != nil || len(within) > 0 {
				t.Errorf("%s has %v (%v)", is, within, err)
			}
		case err == nil:
			t.Errorf("%s is %v", is, info.Mode())
		}
	}
	folders, err := toBind(self)
	if err != nil || !slices.Contains(folders, "/usr") || slices.Contains(folders, "/proc") {
		t.Errorf("binds %v (%v)", folders, err)
	}
	if _, err := toBind(network.Node{DataDir: t.TempDir()}); err == nil {
		t.Error("a node without an image has no error")
	}
}

// TestContainersThatAreNotInstalled: the reason has the cure.
func TestContainersThatAreNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for want, n := range map[string]network.Network{
		"ch-run is not installed: apt-get install charliecloud-runtime": Charliecloud(),
	} {
		if err := n.Needs[0].Probe(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", n.Name, err, want)
		}
	}
}
