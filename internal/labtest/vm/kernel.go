package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// cached is where a kernel of that version is, or will be.
func cached(cache, version string) Kernel {
	root := filepath.Join(cache, "linux-image-"+version)
	return Kernel{Version: version, Root: root, Image: filepath.Join(root, "boot", "vmlinuz-"+version)}
}

// FetchKernel gives Debian's stock kernel, from the cache, or by apt-get download
// into it. Nothing is installed.
func FetchKernel(ctx context.Context, r *exec.Runner, cache string) (Kernel, error) {
	version, err := kernelVersion(ctx, r, nil)
	if err != nil {
		return Kernel{}, err
	}
	k := cached(cache, version)
	if _, err := os.Stat(k.Root); err == nil {
		return k, nil
	}
	temp, err := newInCache(cache)
	if err != nil {
		return Kernel{}, err
	}
	return k, errors.Join(k.fetch(ctx, r, nil, temp), os.RemoveAll(temp))
}

// newInCache makes a folder there for what is not whole yet.
func newInCache(cache string) (string, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(cache, "new-")
}

// fetch unpacks the kernel in temp and moves it to its place, all at once, so that what is
// in the cache is whole. Another process may have done the same in the meantime.
func (k Kernel) fetch(ctx context.Context, r *exec.Runner, options []string, temp string) error {
	if err := unpackKernel(ctx, r, options, k.Version, temp); err != nil {
		return err
	}
	err := os.Rename(filepath.Join(temp, "root"), k.Root)
	if _, there := os.Stat(k.Root); there == nil {
		return nil
	}
	return err
}

// kernelVersion asks apt, with more options, which version Debian has now.
func kernelVersion(ctx context.Context, r *exec.Runner, options []string) (string, error) {
	got, err := r.Run(ctx, exec.Cmd{Argv: apt("apt-cache", options, "depends", kernelPackage)})
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

// apt is one of apt's programs with options before its own arguments.
func apt(program string, options []string, args ...string) []string {
	return slices.Concat([]string{program}, options, args)
}

// unpackKernel makes dir/root. The names of its modules are listed as depmod
// does it when the package is installed. busybox loads no compressed modules.
func unpackKernel(ctx context.Context, r *exec.Runner, options []string, version, dir string) error {
	download := exec.Cmd{Argv: apt("apt-get", options, "download", "-q", "linux-image-"+version), Dir: dir}
	if _, err := r.Run(ctx, download); err != nil {
		return fmt.Errorf("the kernel's package (apt-get update may be due): %w", err)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("%s left %d packages (%w)", download, len(packages), err)
	}
	root := filepath.Join(dir, "root")
	for _, argv := range [][]string{
		{"dpkg-deb", "-x", packages[0], root},
		{"find", filepath.Join(root, "lib", "modules"), "-name", "*.ko.xz", "-exec", "xz", "-d", "{}", "+"},
		{"depmod", "-b", root, version},
	} {
		if _, err := r.Run(ctx, exec.Cmd{Argv: argv}); err != nil {
			return err
		}
	}
	return nil
}
