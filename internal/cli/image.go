package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/image"
	"github.com/cnibench/cnibench/internal/wholefile"
	"github.com/cnibench/cnibench/internal/workload"
)

// written is what cnibench image -o json prints.
type written struct {
	image.Info
	File string `json:"file"`
}

// imageFlags are the flags of image.
type imageFlags struct {
	out      outputFlags
	name     string
	binaries []string
	tools    bool
	push     string
	insecure bool
}

func imageCommand(stdout, stderr io.Writer) *cobra.Command {
	var f imageFlags
	cmd := &cobra.Command{
		Use:   "image",
		Short: "write or push the container image of this program, without Docker",
		Long: `image writes a tar with the container image of this program, for the nodes of a
cluster. It is an OCI image layout and a Docker archive at once: ctr images
import, kind load image-archive, docker load, podman load, skopeo and crane accept
it. It contains only this program and runs as user 65532; --tools adds the published
tools (iperf3, netperf, sockperf …) and their libraries, as they are installed on
this machine.

With --push it writes no file and pushes to a registry, with the credentials of docker
login or podman login. Name a --binary for each architecture of your nodes: each node
then pulls its own.`,
		Example: `  cnibench image --to cnibench-image.tar
  kind load image-archive cnibench-image.tar
  ctr -n k8s.io images import cnibench-image.tar   # on each node
  cnibench image --push registry.example.com/team/cnibench:v1 --binary amd64/cnibench --binary arm64/cnibench`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, file, err := f.out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			if f.push != "" {
				return f.pushTo(cmd.Context(), stdout, format)
			}
			return f.write(cmd.Context(), stdout, stderr, format, file)
		},
	}
	flags := cmd.Flags()
	f.out.add(flags, plainFormats())
	f.out.addFile(flags, "cnibench-image.tar", "the tar to write; - is standard output")
	flags.StringVar(&f.name, "name", "", "the image's name and tag, for your registry (default cnibench.invalid/cnibench:VERSION)")
	flags.StringArrayVar(&f.binaries, "binary", nil, "the static cnibench binary to include, for nodes of another architecture; with --push once for each architecture (default this program)")
	flags.BoolVar(&f.tools, "tools", false, "add the published tools that are installed on this machine")
	flags.StringVar(&f.push, "push", "", "push to a registry, as REGISTRY/NAME:TAG, and write no file")
	flags.BoolVar(&f.insecure, "insecure", false, "with --push: allow http if the registry does not speak https")
	return cmd
}

// check refuses flags that contradict each other.
func (f *imageFlags) check(flags *pflag.FlagSet) error {
	switch {
	case f.push == "" && f.insecure:
		return usageError{errors.New("--insecure requires --push")}
	case f.push == "" && len(f.binaries) > 1:
		return usageError{errors.New("several --binary require --push: a tar is for one architecture")}
	case f.push != "" && (f.name != "" || flags.Changed("to")):
		return usageError{errors.New("--push names the image and writes no file: leave out --name and --to")}
	case f.tools && len(f.binaries) > 1:
		return usageError{errors.New("--tools adds this machine's programs, which are for its architecture only: name one --binary")}
	}
	if f.push != "" {
		if err := image.CheckReference(f.push); err != nil {
			return usageError{fmt.Errorf("--push: %w", err)}
		}
	}
	return nil
}

// pushTo pushes an image for each binary.
func (f *imageFlags) pushTo(ctx context.Context, stdout io.Writer, format string) error {
	binaries := f.binaries
	if len(binaries) == 0 {
		binaries = []string{""}
	}
	var specs []image.Spec
	for _, binary := range binaries {
		spec, err := imageSpec(ctx, f.push, binary, f.tools)
		if err != nil {
			return err
		}
		specs = append(specs, spec)
	}
	registry := image.Registry{Insecure: f.insecure, Agent: "cnibench/" + version()}
	pushed, err := registry.Push(ctx, f.push, specs)
	if err != nil {
		return err
	}
	return printValue(stdout, format, pushed, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "pushed %s@%s: %s, %.1f MB\n", pushed.Name, pushed.Digest, strings.Join(pushed.Platforms, ", "), float64(pushed.Bytes)/1e6)
		return err
	})
}

// write writes the tar.
func (f *imageFlags) write(ctx context.Context, stdout, stderr io.Writer, format, file string) error {
	if file == stdoutFile && format != formatTerminal {
		return usageError{fmt.Errorf("-o %s prints on standard output, which --to - uses for the tar: name a file with --to", format)}
	}
	binary := ""
	if len(f.binaries) > 0 {
		binary = f.binaries[0]
	}
	spec, err := imageSpec(ctx, f.name, binary, f.tools)
	if err != nil {
		return err
	}
	if file == stdoutFile {
		info, err := image.Write(stdout, spec)
		if err == nil {
			fmt.Fprintln(stderr, info.Name)
		}
		return err
	}
	info, err := writeImage(file, spec)
	if err != nil {
		return err
	}
	return printValue(stdout, format, written{info, file}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: %s, %s, %.1f MB\n", file, info.Name, info.Platform, float64(info.Bytes)/1e6)
		return err
	})
}

// imageSpec is what goes into the image; without a binary it is this program.
func imageSpec(ctx context.Context, name, binary string, tools bool) (image.Spec, error) {
	spec := image.Spec{Name: cmp.Or(name, image.Name(version(), tools)), Binary: binary}
	var err error
	if spec.Binary == "" {
		if spec.Binary, err = os.Executable(); err != nil {
			return spec, err
		}
	}
	if tools {
		spec.Files, err = toolFiles(ctx)
	}
	return spec, err
}

// toolFiles are the published tools of this machine, for an image.
func toolFiles(ctx context.Context) ([]image.File, error) {
	runner := exec.NewRunner()
	defer runner.Close()
	var programs, reads []string
	versions := map[string]string{}
	for _, t := range imageTools() {
		programs = append(append(programs, t.Name), t.Calls...)
		reads = append(reads, t.Reads...)
		if len(t.Version) > 0 && versions[t.Name] == "" {
			versions[t.Name] = agent.ToolVersion(ctx, runner, t)
		}
	}
	slices.Sort(programs)
	slices.Sort(reads)
	files, err := image.Tools(ctx, runner, slices.Compact(programs), slices.Compact(reads))
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(versions)
	return append(files, image.File{Path: agent.ToolVersionsFile, Data: data, Mode: 0o644}), err
}

// imageTools are the tools of all workloads, but for those that no package has and that are
// not on this machine.
func imageTools() []workload.Tool {
	var tools []workload.Tool
	for _, w := range workload.List() {
		for _, t := range w.Spec().Needs {
			if _, err := exec.LookPath(t.Name); err == nil || t.Cure == "" {
				tools = append(tools, t)
			}
		}
	}
	return tools
}

// writeImage writes the tar next to its destination and moves it there when it is
// whole.
func writeImage(file string, spec image.Spec) (info image.Info, err error) {
	made := false
	err = wholefile.Write(file, ".cnibench-image-*", 0o644, func(out *os.File) (err error) {
		made = true
		info, err = image.Write(out, spec)
		return err
	})
	if err != nil && !made { // the place is wrong
		err = usageError{err}
	}
	return info, err
}
