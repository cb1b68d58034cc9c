package image

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// Tools are programs of this machine with the shared libraries that they load,
// each where it is here: the image is made without a registry, so the machine's
// own packages are where they come from. A program that is not installed is an
// error that names it.
func Tools(ctx context.Context, runner *exec.Runner, programs []string) ([]File, error) {
	// nginx asks for the user root by name, where it runs as that.
	passwd := fmt.Sprintf("root:x:0:0::/:/sbin/nologin\ncnibench:x:%d:%d::/:/sbin/nologin\n", User, User)
	group := fmt.Sprintf("root:x:0:\ncnibench:x:%d:\n", User)
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
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(files, func(a, b File) bool { return a.Path == b.Path }), errs
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
	var files []File
	for _, p := range paths {
		files = append(files, File{Path: p, Source: p, Mode: 0o755})
	}
	return files, nil
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
