package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// latest is where the recorded result is for the commands of the tour.
	latest = "results/latest"
	// recordingFile is the recording of a terminal, below docs.
	recordingFile = "tour/recording.svg"
	// elided ends an output that the page shows in part.
	elided = "…"
)

// command runs cnibench with arguments and gives what it prints.
type command func(args ...string) (string, error)

// environment is that of the recorded terminal.
func environment() []string { return []string{"LC_ALL=C.UTF-8", "NO_COLOR=", "TERM=xterm"} }

// scenes are the commands of the recording.
func scenes() []string {
	return []string{
		"cnibench report " + latest,
		"cnibench recommend " + latest + " --for latency",
		"cnibench explain " + latest,
	}
}

// unpack unpacks the recorded result into results/latest of a folder.
func unpack(packed io.Reader, folder string) error {
	z, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	files := tar.NewReader(z)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("%s leaves the folder", h.Name)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		to := filepath.Join(folder, latest, h.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644)); err != nil {
			return err
		}
	}
}

// pack packs a result directory, without its report, as a recorded result.
func pack(result, to string) (err error) {
	if _, err := os.Stat(filepath.Join(result, "samples.jsonl")); err != nil {
		return fmt.Errorf("%s is no result directory: %w", result, err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	files := tar.NewWriter(z)
	for _, name := range []string{"campaign.yaml", "environment.json", "plan.json", "samples.jsonl", "raw"} {
		err := filepath.WalkDir(filepath.Join(result, name), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			inside, err := filepath.Rel(result, path)
			if err != nil {
				return err
			}
			if err := files.WriteHeader(&tar.Header{Name: inside, Mode: 0o644, Size: int64(len(text)), Format: tar.FormatPAX}); err != nil {
				return err
			}
			_, err = files.Write(text)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := errors.Join(files.Close(), z.Close()); err != nil {
		return err
	}
	return os.WriteFile(to, packed.Bytes(), 0o644)
}

// replaceOutput is a page with another text in its only block of output.
func replaceOutput(page, text string) (string, error) {
	const begin, end = "\n```text\n", "\n```\n"
	before, rest, is := strings.Cut(page, begin)
	_, after, ends := strings.Cut(rest, end)
	if !is || !ends || strings.Contains(after, begin) {
		return "", errors.New("want one block of output, between ```text and ```")
	}
	return before + begin + strings.TrimSpace(text) + end + after, nil
}

// refresh is a page with the outputs of its commands as they are now: in each block of
// console that begins with "$ cnibench" and has output. Where the output ends with an
// ellipsis, as many lines as before are kept.
func refresh(page string, run command) (string, error) {
	lines := strings.Split(page, "\n")
	var out []string
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		if lines[i] != "```console" || i+1 == len(lines) {
			continue
		}
		end := i + 1
		for end < len(lines) && lines[end] != "```" {
			end++
		}
		block := lines[i+1 : end]
		if len(block) > 1 {
			fresh, err := output(block, run)
			if err != nil {
				return "", err
			}
			block = fresh
		}
		out = append(out, block...)
		i = end - 1
	}
	return strings.Join(out, "\n"), nil
}

// output is a block with one command and its output.
func output(block []string, run command) ([]string, error) {
	line, is := strings.CutPrefix(block[0], "$ cnibench ")
	if !is {
		return nil, fmt.Errorf("the block %q has an output and no command of cnibench before it", block[0])
	}
	text, err := run(strings.Fields(line)...)
	if err != nil {
		return nil, err
	}
	fresh := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if kept := len(block) - 2; block[len(block)-1] == elided && kept < len(fresh) {
		fresh = append(fresh[:kept:kept], elided)
	}
	return append([]string{block[0]}, fresh...), nil
}
