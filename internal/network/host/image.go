package host

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/network"
)

// image is the root folder of a node's containers. It is in the node's own folder, which
// goes with the lab.
func image(self network.Node) string { return filepath.Join(self.DataDir, "image") }

// makeImage makes a root folder with what this machine has at its own: an empty folder for
// each folder, and the same symbolic links. Container engines bind the folders, so that
// containers have this machine's programs, at their paths.
func makeImage(_ context.Context, self network.Node, _ []network.Node) error {
	entries, err := os.ReadDir("/")
	if err != nil {
		return fmt.Errorf("image of containers: %w", err)
	}
	to := image(self)
	if err := os.Mkdir(to, 0o755); err != nil {
		return fmt.Errorf("image of containers: %w", err)
	}
	for _, e := range entries {
		switch e.Type() {
		case fs.ModeDir:
			err = os.Mkdir(filepath.Join(to, e.Name()), 0o755)
		case fs.ModeSymlink:
			var target string
			if target, err = os.Readlink(filepath.Join("/", e.Name())); err == nil {
				err = os.Symlink(target, filepath.Join(to, e.Name()))
			}
		}
		if err != nil {
			return fmt.Errorf("image of containers: %w", err)
		}
	}
	return nil
}

// toBind are this machine's folders that a container must be given. Engines give it the
// system's own ones, and no command line can name one with a separator of binds in its name.
func toBind(self network.Node) ([]string, error) {
	entries, err := os.ReadDir(image(self))
	if err != nil {
		return nil, fmt.Errorf("image of containers: %w", err)
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() && !slices.Contains([]string{"dev", "proc", "sys", "tmp"}, e.Name()) && !strings.ContainsAny(e.Name(), ":,") {
			all = append(all, "/"+e.Name())
		}
	}
	return all, nil
}
