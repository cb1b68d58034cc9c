package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what cnibench version -o json prints.
type versionInfo struct {
	Version  string `json:"version"`
	Go       string `json:"go"`       // the compiler's version, "go1.26.0"
	Platform string `json:"platform"` // "linux/amd64"
}

func versionCommand(stdout io.Writer) *cobra.Command {
	var out outputFlags
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "print the version",
		Example: "  cnibench version\n  cnibench version -o json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, _, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			info := versionInfo{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return printValue(stdout, format, info, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, "cnibench "+info.Version)
				return err
			})
		},
	}
	out.add(cmd.Flags(), plainFormats())
	return cmd
}

// linkedVersion is set by the linker: -ldflags "-X …/internal/cli.linkedVersion=v1.2.3".
var linkedVersion string

// version is this program's version: the linker's, or the module's, or "devel".
func version() string {
	if linkedVersion != "" {
		return linkedVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
