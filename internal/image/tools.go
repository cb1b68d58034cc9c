package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
)

// File is one file of an image.
type File struct {
	// Path is where it is in the image, absolute.
	Path string
	// Source is the file with its content; Data is the content where there is none.
	Source string
	Data   []byte
	Mode   int64
}

func (f File) read() ([]byte, error) {
	if f.Source == "" {
		return f.Data, nil
	}
	return os.ReadFile(f.Source)
}

// nobody is who runs tools where the agent is root.
const nobody = 65534

// Tools are programs of this machine with the shared libraries that they load,
// each where it is here: the image is made without a registry, so the machine's
// own packages are where they come from. reads are patterns (path.Match) of the files and
// folders that the programs read at run time; modules among them come with their libraries
// too. A program that is not installed is an error that names it.
func Tools(ctx context.Context, runner *exec.Runner, programs, reads []string) ([]File, error) {
	// nginx asks for the user root by name, and an MPI for its own, where it runs as that.
	passwd := fmt.Sprintf("root:x:0:0::/:/sbin/nologin\ncnibench:x:%d:%d::/:/sbin/nologin\nnobody:x:%d:%d::/:/sbin/nologin\n", User, User, nobody, nobody)
	group := fmt.Sprintf("root:x:0:\ncnibench:x:%d:\nnogroup:x:%d:\n", User, nobody)
	files := []File{{Path: "/etc/group", Data: []byte(group), Mode: 0o644}, {Path: "/etc/passwd", Data: []byte(passwd), Mode: 0o644}}
	var missing []string
	var errs error
	for _, name := range programs {
		found, err := exec.LookPath(name)
		if err != nil {
			missing = append(missing, name)
			continue
		}
		files = append(files, File{Path: found, Source: found, Mode: 0o755})
		libraries, err := libraries(ctx, runner, found)
		errs = errors.Join(errs, err)
		files = append(files, libraries...)
	}
	if len(missing) > 0 {
		errs = errors.Join(errs, fmt.Errorf("not installed here: %s\ninstall them: make tools", strings.Join(missing, ", ")))
	}
	read, err := readAtRunTime(ctx, runner, reads)
	files, errs = append(files, read...), errors.Join(errs, err)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(files, func(a, b File) bool { return a.Path == b.Path }), errs
}

// readAtRunTime are the files that patterns match, also in folders, and the libraries of
// the modules among them. What is not on this machine is left out: patterns name what
// several versions of a program read.
func readAtRunTime(ctx context.Context, runner *exec.Runner, patterns []string) ([]File, error) {
	var files []File
	var modules []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		for _, root := range found {
			err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := os.Stat(path) // of what a link leads to
				if err != nil || !info.Mode().IsRegular() {
					return nil //nolint:nilerr // a link that leads nowhere is read by nobody
				}
				files = append(files, File{Path: path, Source: path, Mode: int64(info.Mode().Perm())})
				if strings.HasSuffix(path, ".so") || strings.Contains(filepath.Base(path), ".so.") {
					modules = append(modules, path)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	if len(modules) == 0 {
		return files, nil
	}
	// Modules may lack a library here: then they are not loaded, here or in the image. ldd
	// reports that in its status too.
	res, _ := runner.Run(ctx, exec.Cmd{Argv: append([]string{"ldd"}, modules...), Env: []string{"LC_ALL=C"}})
	var found []string
	for line := range strings.Lines(string(res.Stdout)) {
		if paths, err := loaded(line); err == nil && strings.HasPrefix(line, "\t") { // other lines name the modules
			found = append(found, paths...)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("ldd lists no library of %s: %s", modules[0], res.Stderr)
	}
	return append(files, libraryFiles(found)...), nil
}

// libraries are what the dynamic loader would load for a program, and the loader.
func libraries(ctx context.Context, runner *exec.Runner, program string) ([]File, error) {
	res, err := runner.Run(ctx, exec.Cmd{Argv: []string{"ldd", program}, Env: []string{"LC_ALL=C"}})
	if err != nil {
		if strings.Contains(string(res.Stdout)+string(res.Stderr), "not a dynamic executable") {
			return nil, nil
		}
		return nil, err
	}
	paths, err := loaded(string(res.Stdout))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	return libraryFiles(paths), nil
}

func libraryFiles(paths []string) []File {
	var files []File
	for _, p := range paths {
		files = append(files, File{Path: p, Source: p, Mode: 0o755})
	}
	return files
}

// loaded reads what ldd prints (ldd(1)): "NAME => FILE (ADDRESS)", the loader
// "FILE (ADDRESS)", and the kernel's own "linux-vdso.so.1 (ADDRESS)", which is no
// file.
func loaded(ldd string) ([]string, error) {
	var paths []string
	for line := range strings.Lines(ldd) {
		line = strings.TrimSpace(line)
		name, file, mapped := strings.Cut(line, " => ")
		if !mapped {
			file = line
		}
		if strings.HasPrefix(file, "not found") {
			return nil, fmt.Errorf("its library %s is not installed", name)
		}
		file, _, _ = strings.Cut(file, " (")
		if strings.HasPrefix(file, "/") {
			paths = append(paths, file)
		}
	}
	return paths, nil
}
