package vm

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/wholefile"
)

// backports is the source of newer kernels for Debian 12, which a machine need not have among
// its own, and the file of the cache that has the version of the one in it.
const (
	backports        = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm-backports main\n"
	backportsVersion = "bookworm-backports"
)

// FetchBackports gives the kernel of Debian's backports (Linux 6.12), from the cache, or by
// apt-get download into it. apt gets a source and lists of its own, so the machine's sources
// and lists stay as they are, and nothing is installed. A kernel in the cache stays the one
// that is used: remove the file bookworm-backports there to fetch a newer one.
func FetchBackports(ctx context.Context, r *exec.Runner, cache string) (k Kernel, err error) {
	note := filepath.Join(cache, backportsVersion)
	version, err := os.ReadFile(note)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Kernel{}, err
	}
	k = cached(cache, strings.TrimSpace(string(version)))
	if _, err := os.Stat(k.Root); err == nil {
		return k, nil
	}
	temp, err := newInCache(cache)
	if err != nil {
		return Kernel{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	options, err := aptOf(backports, temp)
	if err != nil {
		return Kernel{}, err
	}
	if _, err := r.Run(ctx, exec.Cmd{Argv: apt("apt-get", options, "update", "-q", "-o", "APT::Update::Error-Mode=any")}); err != nil {
		return Kernel{}, err
	}
	newest, err := kernelVersion(ctx, r, options)
	if err != nil {
		return Kernel{}, err
	}
	k = cached(cache, newest)
	if err := k.fetch(ctx, r, options, temp); err != nil {
		return Kernel{}, err
	}
	return k, wholefile.Write(note, "note-", 0o644, wholefile.Bytes([]byte(newest+"\n")))
}

// aptOf gives options with which apt knows one source alone, and keeps what it knows of it in
// a folder. Downloads are done as root, because apt's own user cannot enter the cache.
func aptOf(source, dir string) ([]string, error) {
	list := filepath.Join(dir, "sources.list")
	if err := os.WriteFile(list, []byte(source), 0o644); err != nil {
		return nil, err
	}
	for _, needed := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, needed), 0o755); err != nil {
			return nil, err
		}
	}
	var options []string
	for _, o := range []string{
		"Dir::Etc::sourcelist=" + list, "Dir::Etc::sourceparts=-", "Dir::State::lists=" + filepath.Join(dir, "lists"),
		"Dir::Cache=" + dir, "APT::Sandbox::User=root",
	} {
		options = append(options, "-o", o)
	}
	return options, nil
}
