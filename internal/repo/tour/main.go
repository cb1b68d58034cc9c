// Command tour makes what docs/tour.md shows, from a recorded result: the outputs in the
// page, the recording of a terminal and the pictures of the HTML report. `make tour`
// runs it; it measures nothing. Pictures need chromium.
//
//	tour [-program FILE] [-docs FOLDER] [-without-pictures]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/exec"
)

// recordedResult is a recorded quickstart: a result directory without its report.
const recordedResult = "internal/repo/tour/testdata/quickstart.tar.gz"

func main() {
	program := flag.String("program", "bin/cnibench", "the program to show")
	docs := flag.String("docs", "docs", "the folder with tour.md")
	without := flag.Bool("without-pictures", false, "make no pictures of the HTML report, which need chromium")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := makeAll(ctx, *program, *docs, !*without); err != nil {
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}

// makeAll writes the page's outputs, the recording, and the pictures where asked for.
func makeAll(ctx context.Context, program, docs string, pictures bool) (err error) {
	work, err := os.MkdirTemp("", "cnibench-tour-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	packed, err := os.ReadFile(recordedResult)
	if err != nil {
		return err
	}
	if err := unpack(bytes.NewReader(packed), work); err != nil {
		return err
	}
	if program, err = filepath.Abs(program); err != nil {
		return err
	}
	runner := exec.NewRunner()
	defer runner.Close()
	run := func(args ...string) (string, error) {
		res, err := runner.Run(ctx, exec.Cmd{Argv: append([]string{program}, args...), Dir: work, Env: environment()})
		return string(res.Stdout), err
	}
	page := filepath.Join(docs, "tour.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	fresh, err := refresh(string(text), run)
	if err != nil {
		return err
	}
	recording, err := record(scenes(), run)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(page, []byte(fresh), 0o644), os.WriteFile(filepath.Join(docs, recordingFile), recording, 0o644)); err != nil {
		return err
	}
	if !pictures {
		return nil
	}
	if _, err := run("report", latest, "-o", "html", "--to", "report.html"); err != nil {
		return err
	}
	return shoot(ctx, filepath.Join(work, "report.html"), docs)
}
