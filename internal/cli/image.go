package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

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

func imageCommand(stdout, stderr io.Writer) *cobra.Command {
	var out outputFlags
	var name, binary string
	var tools bool
	cmd := &cobra.Command{
		Use:   "image",
		Short: "write the container image of this program, without Docker",
		Long: `image writes a tar with the container image of this program, for the nodes of a
cluster. It is an OCI image layout and a Docker archive at once: ctr images
import, kind load image-archive, docker load, podman load, skopeo and crane accept
it. It contains only this program and runs as user 65532; --tools adds the published
tools (iperf3, netperf, sockperf …) and their libraries, as they are installed on
this machine.`,
		Example: `  cnibench image --to cnibench-image.tar
  kind load image-archive cnibench-image.tar
  ctr -n k8s.io images import cnibench-image.tar   # on each node`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, file, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			if file == stdoutFile && format != formatTerminal {
				return usageError{fmt.Errorf("-o %s prints on standard output, which --to - uses for the tar: name a file with --to", format)}
			}
			spec, err := imageSpec(cmd.Context(), name, binary, tools)
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
		},
	}
	flags := cmd.Flags()
	out.add(flags, plainFormats())
	out.addFile(flags, "cnibench-image.tar", "the tar to write; - is standard output")
	flags.StringVar(&name, "name", "", "the image's name and tag, for your registry (default cnibench.invalid/cnibench:VERSION)")
	flags.StringVar(&binary, "binary", "", "the static cnibench binary to include, for nodes of another architecture (default this program)")
	flags.BoolVar(&tools, "tools", false, "add the published tools that are installed on this machine")
	return cmd
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
		runner := exec.NewRunner()
		defer runner.Close()
		spec.Files, err = image.Tools(ctx, runner, toolNames())
	}
	return spec, err
}

// toolNames are the programs of all workloads that pods of a cluster can run. Those with
// ranks run in a lab only.
func toolNames() []string {
	var names []string
	for _, w := range workload.List() {
		if w.Spec().ManyEnds {
			continue
		}
		for _, t := range w.Spec().Needs {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// writeImage writes the tar beside its place and moves it there when it is
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
