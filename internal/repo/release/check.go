package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/macho"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxProgram bounds what is read of one file of a package, bytes.
const maxProgram = 1 << 30

// check opens every archive, deb and apk that SHA256SUMS lists and returns an error where
// a program is not for the platform in the file's name, or a man page, a completion or the
// licence is missing. Of rpms only the name is known.
func check(dir, sums string) error {
	var errs []error
	for line := range strings.Lines(sums) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		var err error
		switch filepath.Ext(name) {
		case ".gz":
			err = checkFile(dir, name, archiveFiles, func(files contents, goos, arch string) error {
				folder := strings.TrimSuffix(name, ".tar.gz") + "/"
				return errors.Join(files.has(folder+"cnibench", folder+"LICENSE", folder+"man/cnibench-run.1.gz",
					folder+"completions/cnibench.bash", folder+"completions/_cnibench", folder+"completions/cnibench.fish"),
					isFor(files[folder+"cnibench"], goos, arch))
			})
		case ".deb":
			err = checkFile(dir, name, debFiles, func(files contents, _, arch string) error {
				return errors.Join(installed(files, "./usr/share/zsh/vendor-completions/_cnibench", "./"), isFor(files["./usr/bin/cnibench"], "linux", arch),
					files.says("control", "Architecture: "+arch))
			})
		case ".apk":
			err = checkFile(dir, name, archiveFiles, func(files contents, _, arch string) error {
				return errors.Join(installed(files, "usr/share/zsh/site-functions/_cnibench", ""), isFor(files["usr/bin/cnibench"], "linux", arch),
					files.says(".PKGINFO", "arch = "+linuxName(arch)))
			})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// checkFile reads the files of a package and hands them on with the platform of its name.
func checkFile(dir, name string, read func(io.Reader) (contents, error), then func(files contents, goos, arch string) error) error {
	goos, arch, err := platformOf(name)
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	files, err := read(f)
	if err != nil {
		return err
	}
	return then(files, goos, arch)
}

// platformOf is the platform that a file's name promises, in Go's words.
func platformOf(name string) (goos, arch string, err error) {
	goos = "linux"
	if strings.Contains(name, "-darwin-") {
		goos = "darwin"
	}
	for _, a := range []string{"amd64", "arm64"} {
		if strings.Contains(name, a) || strings.Contains(name, linuxName(a)) {
			return goos, a, nil
		}
	}
	return "", "", errors.New("the name has no known architecture")
}

// linuxName is the kernel's name of an architecture, which rpm and apk use.
func linuxName(arch string) string {
	return map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
}

// installed checks the files that each package has, under a prefix.
func installed(files contents, zsh, prefix string) error {
	return files.has(prefix+"usr/bin/cnibench", prefix+"usr/share/man/man1/cnibench.1.gz", prefix+"usr/share/man/man1/cnibench-run.1.gz",
		prefix+"usr/share/bash-completion/completions/cnibench", zsh, prefix+"usr/share/fish/vendor_completions.d/cnibench.fish",
		prefix+"usr/share/doc/cnibench/copyright")
}

// contents are the regular files of a package.
type contents map[string][]byte

func (c contents) has(names ...string) error {
	missing := slices.DeleteFunc(names, func(name string) bool { _, found := c[name]; return found })
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("it has no %s", strings.Join(missing, ", "))
}

// says checks that one of the lines of a file is as wanted.
func (c contents) says(name, line string) error {
	if slices.Contains(strings.Split(string(c[name]), "\n"), line) {
		return nil
	}
	return fmt.Errorf("its %s has no line %q", name, line)
}

// archiveFiles are those of a gzipped tar. An apk is several, one after the other.
func archiveFiles(in io.Reader) (contents, error) {
	packed, err := gzip.NewReader(bufio.NewReader(in))
	if err != nil {
		return nil, err
	}
	files := contents{}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[h.Name], err = io.ReadAll(io.LimitReader(r, maxProgram)); err != nil {
			return nil, err
		}
	}
}

// debFiles are those of a deb (deb(5)): an ar archive with two gzipped tars. The file
// "control" is that of the package.
func debFiles(in io.Reader) (contents, error) {
	const magic = "!<arch>\n"
	r := bufio.NewReader(in)
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != magic {
		return nil, errors.New("it is no ar archive")
	}
	files := contents{}
	for {
		entry := make([]byte, 60) // name, time, owner, group, mode, size, end: ar(5)
		if _, err := io.ReadFull(r, entry); errors.Is(err, io.EOF) {
			return files, nil
		} else if err != nil {
			return nil, err
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(entry[48:58])), 10, 64)
		if err != nil || size < 0 || size > maxProgram {
			return nil, errors.New("an entry of the ar archive has no size")
		}
		data := make([]byte, size+size%2)
		if _, err := io.ReadFull(r, data); err != nil {
			return nil, err
		}
		name := strings.TrimRight(string(entry[:16]), " /")
		if !strings.HasSuffix(name, ".tar.gz") {
			continue
		}
		inside, err := archiveFiles(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for file, content := range inside {
			if name == "control.tar.gz" {
				file = path.Base(file)
			}
			files[file] = content
		}
	}
}

// isFor returns an error where a program is not for a platform.
func isFor(program []byte, goos, arch string) error {
	if goos == "darwin" {
		f, err := macho.NewFile(bytes.NewReader(program))
		if err != nil {
			return fmt.Errorf("its program is not for macOS: %w", err)
		}
		defer f.Close()
		if want := map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}[arch]; f.Cpu != want {
			return fmt.Errorf("its program is for %v, want %v", f.Cpu, want)
		}
		return nil
	}
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("its program is not for Linux: %w", err)
	}
	defer f.Close()
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; f.Machine != want {
		return fmt.Errorf("its program is for %v, want %v", f.Machine, want)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("its program needs shared libraries")
		}
	}
	return nil
}
