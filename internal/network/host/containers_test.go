package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
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

// TestApptainerCommandLine: apptainer gets the command line of its manual. A substitute runs the
// program without a container, and programs keep this one's PATH, which Apptainer replaces.
func TestApptainerCommandLine(t *testing.T) {
	bin := t.TempDir()
	const substitute = `#!/bin/sh
[ "$1" = --silent ] && [ "$2" = exec ] && [ "$3" = --userns ] && [ "$4" = --no-home ] && [ "$5" = --bind ] && [ -d "$7" ] || exit 9
for folder in $(echo "$6" | tr , ' '); do [ -d "$folder" ] && [ -d "$7$folder" ] || exit 8; done
shift 7
PATH=/usr/bin:/bin exec "$@"
`
	if err := os.WriteFile(filepath.Join(bin, "apptainer"), []byte(substitute), 0o755); err != nil {
		t.Fatal(err)
	}
	path := bin + ":" + os.Getenv("PATH")
	t.Setenv("PATH", path)
	if err := apptainerTool().Probe(); err != nil {
		t.Error(err)
	}
	argv, err := apptainer(nodeWithImage(t))
	if err != nil {
		t.Fatal(err)
	}
	r := exec.NewRunner()
	defer r.Close()
	got, err := r.Run(t.Context(), exec.Cmd{Argv: append(argv, "sh", "-c", `echo "$PATH"`)})
	if err != nil || strings.TrimSpace(string(got.Stdout)) != path {
		t.Errorf("PATH is %q, want %s (%v)", got.Stdout, path, err)
	}
}

// TestCharliecloudIsAskedInItsOwnTmp: asking whether ch-run works leaves the machine's /tmp as it
// is.
func TestCharliecloudIsAskedInItsOwnTmp(t *testing.T) {
	labtest.Tool(t, "ch-run", "charliecloud-runtime")
	const left = "/tmp/newroot" // of ch-checkns
	_, before := os.Stat(left)
	if err := charliecloudTool().Probe(); err != nil {
		t.Skip(err)
	}
	if _, after := os.Stat(left); before != nil && after == nil {
		t.Errorf("it made %s", left)
	}
}

// TestContainersThatAreNotInstalled: the reason has the cure.
func TestContainersThatAreNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for want, n := range map[string]network.Network{
		"ch-run is not installed: apt-get install charliecloud-runtime": Charliecloud(),
		"apptainer is not installed: ":                                  Apptainer(),
	} {
		if err := n.Needs[0].Probe(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", n.Name, err, want)
		}
	}
}
