package cli

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/papers"
)

// complete gives shells what may be completed where: campaign files, result directories,
// and the names that verbs and flags take.
func complete(root *cobra.Command) error {
	verbs := map[string]cobra.CompletionFunc{
		"run": fileOf("yaml", "yml"), "report": folder, "explain": folder, "recommend": folder, "compare": folder, "push": folder,
		"reproduce": names(paperNames),
	}
	maps.Copy(verbs, labCompletions())
	for verb, values := range verbs {
		cmd, rest, err := root.Find(strings.Fields(verb))
		if err != nil || len(rest) > 0 {
			return errors.Join(errors.New("completion of an unknown verb: "+verb), err)
		}
		cmd.ValidArgsFunction = values
	}
	flags := map[string]cobra.CompletionFunc{
		"network": names(networkNames), "link": names(linkNames), "profile": names(profile.Names), "context": contexts, "encryption": names(result.Encryptions),
		"testbed": names(func() []string { return known().Testbeds }), "for": names(goalNames),
		"kubeconfig": anyFile, "inventory": anyFile, "out": folder, "campaign": fileOf("yaml", "yml"), "file": fileOf("yaml", "yml"), "to": anyFile,
	}
	var errs []error
	each(root, func(cmd *cobra.Command) {
		for flag, values := range flags {
			if cmd.Flags().Lookup(flag) != nil {
				errs = append(errs, cmd.RegisterFlagCompletionFunc(flag, values))
			}
		}
		out := cmd.Flags().Lookup("output")
		if out == nil {
			return
		}
		formats := names(func() []string { return slices.Clone(out.Annotations[FormatsAnnotation]) })
		for _, flag := range []string{"output", "format"} {
			if cmd.Flags().Lookup(flag) != nil {
				errs = append(errs, cmd.RegisterFlagCompletionFunc(flag, formats))
			}
		}
	})
	errs = append(errs, root.RegisterFlagCompletionFunc("color", names(colors)))
	return errors.Join(errs...)
}

// each calls f for a command and all below it.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		each(sub, f)
	}
}

// fileOf completes files with one of the endings.
func fileOf(endings ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

func folder(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func anyFile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// names completes one of some names.
func names(all func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
		return beginning(all(), begin), cobra.ShellCompDirectiveNoFileComp
	}
}

func beginning(all []string, with string) []string {
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, with) })
}

// contexts are those of the kubeconfig that is named, or where kubectl looks.
func contexts(cmd *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
	kubeconfig := ""
	if f := cmd.Flags().Lookup("kubeconfig"); f != nil {
		kubeconfig = f.Value.String()
	}
	all, err := kubeclient.Contexts(kubeconfig)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return beginning(all, begin), cobra.ShellCompDirectiveNoFileComp
}

func networkNames() []string {
	var all []string
	for _, n := range networks() {
		all = append(all, n.Name)
	}
	return all
}

func linkNames() []string {
	var all []string
	for _, l := range links() {
		all = append(all, l.Name)
	}
	return all
}

func paperNames() []string {
	folders, err := papers.FS.ReadDir(".")
	if err != nil {
		return nil // it is in the program
	}
	var all []string
	for _, f := range folders {
		if f.IsDir() {
			all = append(all, f.Name())
		}
	}
	return all
}
