package docker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/plugin"
)

// Programs are what a node's dockerd needs of this program.
func Programs() []plugin.Program {
	return []plugin.Program{{Name: dockerHolder, Run: holdDocker}, {Name: dockerRuntime, Run: runContainer}}
}

const (
	// dockerHolder starts dockerd with the files of a node.
	dockerHolder = "cnibench-dockerd"
	// dockerRuntime is the OCI runtime that dockerd knows by this name: runc, with a
	// network namespace that already exists.
	dockerRuntime = "cnibench-runc"
	// podNamespace is the variable of a container with the file of its namespace.
	podNamespace = "CNIBENCH_NETNS"
)

// linkPrograms makes links in a folder under which this program is the others.
func linkPrograms(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, p := range Programs() {
		if err := os.Symlink(self, filepath.Join(dir, p.Name)); err != nil {
			return err
		}
	}
	return nil
}

// holdDocker gets the node's folder and dockerd's arguments. It is started in a mount
// namespace of its own, so that nothing that Docker mounts or writes into /etc, /run
// or /var is the machine's. Its temporary files are in that /run.
func holdDocker(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("usage: %s FOLDER DOCKERD ARGUMENTS", dockerHolder)
	}
	if err := netns.PrivateFiles(args[1], filepath.Join(args[1], "tmp")); err != nil {
		return err
	}
	// Where containerd does not answer, dockerd has it write its stacks into this folder.
	if err := os.Setenv("TMPDIR", "/run"); err != nil {
		return err
	}
	return become(args[2:], os.Environ())
}

// become replaces this program by another.
func become(argv, env []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, argv, env))
}

// runContainer is runc, whose containers get a network namespace that exists where
// they name one.
func runContainer(args []string) error {
	bundle := ""
	if slices.Contains(args, "create") {
		for i, a := range args[:len(args)-1] {
			if a == "--bundle" || a == "-b" {
				bundle = args[i+1]
			}
		}
	}
	if bundle != "" {
		if err := rewriteSpec(filepath.Join(bundle, "config.json")); err != nil {
			return fmt.Errorf("container: %w", err)
		}
	}
	return become(append([]string{"runc"}, args[1:]...), os.Environ())
}

// rewriteSpec puts the namespace that a container's environment names into its
// specification (config.json of the OCI runtime specification).
func rewriteSpec(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data, err = withNamespace(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, data, 0o600)
}

// withNamespace is rewriteSpec for the specification's text. A container that Docker itself
// puts into a namespace that exists, as with --network host, stays there. The score for the
// kernel's choice of what to kill goes: to lower it is a privilege that a machine may
// lack.
func withNamespace(spec []byte) ([]byte, error) {
	var config map[string]any
	d := json.NewDecoder(bytes.NewReader(spec))
	d.UseNumber()
	if err := d.Decode(&config); err != nil {
		return nil, err
	}
	process, _ := config["process"].(map[string]any)
	delete(process, "oomScoreAdj")
	own, named := networkNamespace(config), environment(process, podNamespace)
	switch {
	case named == "" && (own == nil || own["path"] == nil || own["path"] == ""):
		return nil, errors.New("its environment has no " + podNamespace)
	case own == nil:
		return nil, errors.New("it has no network namespace")
	case named != "":
		own["path"] = named
	}
	return json.Marshal(config)
}

// environment is the value of a variable of a container's process; "" where it has none.
func environment(process map[string]any, name string) string {
	env, _ := process["env"].([]any)
	for _, e := range env {
		if s, ok := e.(string); ok {
			if value, found := strings.CutPrefix(s, name+"="); found {
				return value
			}
		}
	}
	return ""
}

// networkNamespace is the part of a specification that is about it; nil where there is none.
func networkNamespace(config map[string]any) map[string]any {
	linux, _ := config["linux"].(map[string]any)
	namespaces, _ := linux["namespaces"].([]any)
	for _, n := range namespaces {
		if m, ok := n.(map[string]any); ok && m["type"] == "network" {
			return m
		}
	}
	return nil
}
