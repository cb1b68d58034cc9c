// Command docfiles writes what a package has beside the program: man pages, and
// completions for bash, zsh and fish, all made from the tree of commands. Its test
// writes docs/cli.md from the same tree.
//
//	docfiles DIR
//
// It writes DIR/man and DIR/completions. The pages carry the date of
// SOURCE_DATE_EPOCH, where that is set, in place of today's.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra/doc"

	"github.com/cnibench/cnibench/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docfiles DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "docfiles:", err)
		os.Exit(1)
	}
}

// write writes all files below a folder, which it creates.
func write(dir string) error {
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	if err := errors.Join(os.MkdirAll(man, 0o755), os.MkdirAll(completions, 0o755)); err != nil {
		return err
	}
	root := cli.Root(io.Discard, io.Discard)
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd()
	root.Long += "\n\n" + cli.EndOfHelp()
	header := &doc.GenManHeader{Title: "CNIBENCH", Section: "1", Source: "cnibench", Manual: "cnibench"}
	if err := doc.GenManTree(root, header, man); err != nil {
		return err
	}
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(completions, "cnibench.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "_cnibench")),
		root.GenFishCompletionFile(filepath.Join(completions, "cnibench.fish"), true),
	)
}
