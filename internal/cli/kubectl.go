package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// What this program is called where kubectl finds it on PATH, and where kubectl
// asks for completions (kubectl help plugin).
const (
	pluginName         = "kubectl-cnibench"
	pluginCompleteName = "kubectl_complete-cnibench"
)

// asPlugin gives the arguments of a program of this name, and makes help and
// errors of one that kubectl started say what a person types.
func asPlugin(root *cobra.Command, program string, args []string) []string {
	switch filepath.Base(program) {
	case pluginCompleteName:
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	case pluginName:
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cnibench"}
		each(root, func(cmd *cobra.Command) {
			cmd.Example = strings.ReplaceAll(cmd.Example, "  cnibench ", "  kubectl cnibench ")
		})
	}
	return args
}
