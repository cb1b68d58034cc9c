package vm

import (
	"context"
	"debug/elf"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
)

//go:embed init.sh
var initScript string

//go:embed run.sh
var runScript string

// busybox is the guest's first program. There are no libraries when it begins.
const busybox = "/bin/busybox"

// writeInitramfs makes what the guest begins with: busybox, the modules that it
// needs to see this machine's files, and the program.
func (m Machine) writeInitramfs(ctx context.Context, tree, to string, p Program) error {
	if err := isStatic(busybox); err != nil {
		return err
	}
	modules, err := m.modules(ctx, "virtio_pci", "9pnet_virtio", "9p", "overlay")
	if err != nil {
		return err
	}
	command := exec.Cmd{Argv: append([]string{"/vm/program"}, p.Args...), Env: p.Env}
	texts := map[string]string{
		"init": initScript, "vm/run.sh": runScript, "vm/command.sh": command.String() + "\n",
		"vm/version": m.Kernel.Version + "\n", "vm/modules": m.Kernel.Root + "/lib/modules\n", "vm/dir": filepath.Join("/", p.Dir) + "\n",
	}
	files := map[string]string{"vm/program": p.Path, "vm/busybox": busybox}
	var order []string
	for _, module := range modules {
		name := filepath.Base(module)
		order = append(order, name)
		files["modules/"+name] = module
	}
	texts["modules/order"] = strings.Join(order, "\n") + "\n"
	for name, text := range texts {
		if err := writeFile(filepath.Join(tree, name), strings.NewReader(text)); err != nil {
			return err
		}
	}
	for name, path := range files {
		if err := copyFile(filepath.Join(tree, name), path); err != nil {
			return err
		}
	}
	names := []string{".", "vm", "modules"}
	for _, all := range []map[string]string{texts, files} {
		for name := range all {
			names = append(names, name)
		}
	}
	cpio := exec.Cmd{
		Argv: []string{busybox, "cpio", "-o", "-H", "newc", "-F", to}, Dir: tree,
		Stdin: strings.NewReader(strings.Join(names, "\n") + "\n"),
	}
	_, err = m.Runner.Run(ctx, cpio)
	return err
}

// modules gives the files of kernel modules and of those that they need, in the
// order in which they are to be loaded.
func (m Machine) modules(ctx context.Context, names ...string) ([]string, error) {
	argv := append([]string{"modprobe", "-d", m.Kernel.Root, "-S", m.Kernel.Version, "--show-depends", "-a"}, names...)
	got, err := m.Runner.Run(ctx, exec.Cmd{Argv: argv})
	if err != nil {
		return nil, err
	}
	var files []string
	seen := map[string]bool{}
	for line := range strings.Lines(string(got.Stdout)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "insmod" && !seen[f[1]] {
			seen[f[1]] = true
			files = append(files, f[1])
		}
	}
	return files, nil
}

// isStatic says why a program cannot run without libraries.
func isStatic(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%w: apt-get install busybox-static", err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s needs libraries: apt-get install busybox-static", path)
		}
	}
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return writeFile(to, in)
}

func writeFile(to string, in io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("%s: %w", to, errors.Join(err, out.Close()))
	}
	return out.Close()
}
