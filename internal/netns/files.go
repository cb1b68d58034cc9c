package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// PrivateFiles gives this process, which must be in a mount namespace of its own with
// private mounts, the files of a node: what is written to /etc, /opt and /var goes to
// memory, and /run is empty. All of it ends with the namespace. The folder keep stays
// what it is, at its place; tmp is an empty folder that is used for the memory.
func PrivateFiles(keep, tmp string) error {
	own, err := os.Open(keep)
	if err != nil {
		return err
	}
	defer own.Close()
	if err := Mount("tmpfs", tmp, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, dir := range []string{"/etc", "/opt", "/var"} {
		upper, work := filepath.Join(tmp, dir, "upper"), filepath.Join(tmp, dir, "work")
		if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
			return err
		}
		options := "lowerdir=" + dir + ",upperdir=" + upper + ",workdir=" + work
		if err := Mount("overlay", dir, "overlay", 0, options); err != nil {
			return fmt.Errorf("%w (the kernel needs overlay file systems: CONFIG_OVERLAY_FS)", err)
		}
	}
	if err := Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	// The folder is in one of those that were just covered, or not: it is at its
	// place all the same.
	if err := os.MkdirAll(keep, 0o755); err != nil {
		return err
	}
	return Mount(fmt.Sprintf("/proc/self/fd/%d", own.Fd()), keep, "", unix.MS_BIND, "")
}

// Mount is mount(2); the error names what was to be mounted where.
func Mount(source, target, kind string, flags uintptr, options string) error {
	if err := unix.Mount(source, target, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s on %s: %w", strings.TrimPrefix(source, "/proc/self/"), target, err)
	}
	return nil
}
