// Command tour makes what docs/tour.md shows, from a recorded result: the outputs in the
// page, the recording of a terminal and the pictures of the HTML report. It also makes the
// summary in README.md. `make tour` runs it; it measures nothing. Pictures need chromium.
// With -record it takes another result directory as the recorded result first; the outputs
// and the record in docs/data.md are then to be changed by hand, where its tests say so.
//
//	tour [-program FILE] [-docs FOLDER] [-record DIR] [-without-pictures]
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
	result := flag.String("record", "", "the result directory of a quickstart, to be the recorded result from now on")
	without := flag.Bool("without-pictures", false, "make no pictures of the HTML report, which need chromium")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *result != "" {
		if err := pack(*result, recordedResult); err != nil {
			fmt.Fprintln(os.Stderr, "tour:", err)
			os.Exit(1)
		}
	}
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
	start := filepath.Join(docs, "..", "README.md")
	readme, err := os.ReadFile(start)
	if err != nil {
		return err
	}
	summary, err := run("report", latest)
	if err != nil {
		return err
	}
	withSummary, err := replaceOutput(string(readme), summary)
	if err != nil {
		return fmt.Errorf("%s: %w", start, err)
	}
	recording, err := record(scenes(), run)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(start, []byte(withSummary), 0o644), os.WriteFile(page, []byte(fresh), 0o644), os.WriteFile(filepath.Join(docs, recordingFile), recording, 0o644)); err != nil {
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
