package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
)

// kernelPackage is Debian's name for its newest stock kernel; it depends on the
// package that has it.
const kernelPackage = "linux-image-amd64"

// Kernel is an unpacked kernel.
type Kernel struct {
	Version string // "6.1.0-56-amd64"
	Image   string // its vmlinuz
	Root    string // the folder with lib/modules/Version
}

// FetchKernel gives Debian's stock kernel, from the cache, or by apt-get download
// into it. Nothing is installed.
func FetchKernel(ctx context.Context, r *exec.Runner, cache string) (Kernel, error) {
	version, err := kernelVersion(ctx, r)
	if err != nil {
		return Kernel{}, err
	}
	root := filepath.Join(cache, "linux-image-"+version)
	k := Kernel{Version: version, Root: root, Image: filepath.Join(root, "boot", "vmlinuz-"+version)}
	if _, err := os.Stat(root); err == nil {
		return k, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Kernel{}, err
	}
	temp, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return Kernel{}, err
	}
	err = unpackKernel(ctx, r, version, temp)
	if err == nil {
		// All at once, so that what is in the cache is whole.
		err = os.Rename(filepath.Join(temp, "root"), root)
	}
	return k, errors.Join(err, os.RemoveAll(temp))
}

// kernelVersion asks apt which version Debian has now.
func kernelVersion(ctx context.Context, r *exec.Runner) (string, error) {
	got, err := r.Run(ctx, exec.Cmd{Argv: []string{"apt-cache", "depends", kernelPackage}})
	if err != nil {
		return "", fmt.Errorf("which kernel Debian has: %w", err)
	}
	for line := range strings.Lines(string(got.Stdout)) {
		if _, version, found := strings.Cut(strings.TrimSpace(line), "Depends: linux-image-"); found {
			return version, nil
		}
	}
	return "", fmt.Errorf("apt knows no %s: it needs Debian's sources and `apt-get update`", kernelPackage)
}

// unpackKernel makes dir/root. The names of its modules are listed as depmod
// does it when the package is installed.
func unpackKernel(ctx context.Context, r *exec.Runner, version, dir string) error {
	download := exec.Cmd{Argv: []string{"apt-get", "download", "-q", "linux-image-" + version}, Dir: dir}
	if _, err := r.Run(ctx, download); err != nil {
		return fmt.Errorf("the kernel's package (apt-get update may be due): %w", err)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("%s left %d packages (%w)", download, len(packages), err)
	}
	root := filepath.Join(dir, "root")
	for _, argv := range [][]string{{"dpkg-deb", "-x", packages[0], root}, {"depmod", "-b", root, version}} {
		if _, err := r.Run(ctx, exec.Cmd{Argv: argv}); err != nil {
			return err
		}
	}
	return nil
}
