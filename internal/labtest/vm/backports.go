package vm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/wholefile"
)

// backportsVersion is the file of the cache that has the version of the kernel of Debian's
// backports in it.
const backportsVersion = "backports"

// FetchBackports gives the kernel of Debian's backports (Linux 6.12), from the cache, or by
// apt-get download into it. apt gets a source and lists of its own, so the machine's sources
// and lists stay as they are, and nothing is installed. A kernel in the cache stays the one
// that is used: remove the file backports there to fetch a newer one.
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
	source, err := backports(ctx, r)
	if err != nil {
		return Kernel{}, err
	}
	options, err := aptOf(source, temp)
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

// keyring has Debian's keys (package debian-archive-keyring).
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// backports is the source of newer kernels for this version of Debian, which a machine need not
// have among its own. The mirror is that of its own source of Debian.
func backports(ctx context.Context, r *exec.Runner) (string, error) {
	got, err := r.Run(ctx, exec.Cmd{Argv: []string{"apt-get", "indextargets", "--format", "$(ORIGIN) $(CODENAME) $(REPO_URI)", "Created-By: Packages"}})
	if err != nil {
		return "", fmt.Errorf("apt's sources: %w", err)
	}
	for line := range strings.Lines(string(got.Stdout)) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "Debian" && !strings.Contains(f[1], "-") { // as bookworm-security has
			return fmt.Sprintf("deb [signed-by=%s] %s %s-backports main\n", keyring, f[2], f[1]), nil
		}
	}
	return "", errors.New("apt has no source of Debian: it needs one and `apt-get update`")
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
