//go:build linux

package cli

import (
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/testbed/lab"
)

// labCompletions are those of the verbs that take a lab.
func labCompletions() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{"lab down": names(labNames), "lab exec": first(placeNames)}
}

// first completes the first argument alone: a command of a lab's place follows.
func first(all func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return beginning(all(), begin), cobra.ShellCompDirectiveNoFileComp
	}
}

// labNames and placeNames are those of the existing labs; none where they cannot be
// read.
func labNames() []string {
	infos, _ := lab.List(lab.Options{Dir: stateDir()})
	var all []string
	for _, l := range infos {
		all = append(all, l.ID)
	}
	return all
}

func placeNames() []string {
	infos, _ := lab.List(lab.Options{Dir: stateDir()})
	var all []string
	for _, l := range infos {
		for _, p := range l.Places {
			all = append(all, p.Namespace)
		}
	}
	return all
}
