package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/cli"
)

// maxImages bounds what the tour's pictures take, bytes.
const maxImages = 400 << 10

// unpacked changes into a folder with the recorded result, and gives a command of this
// program and the folder docs.
func unpacked(t *testing.T) (command, string) {
	t.Helper()
	docs, err := filepath.Abs("../../../docs")
	if err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile("testdata/quickstart.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := unpack(bytes.NewReader(packed), "."); err != nil {
		t.Fatal(err)
	}
	for _, v := range environment() {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	return func(args ...string) (string, error) {
		var stdout, stderr bytes.Buffer
		if status := cli.Main(args, &stdout, &stderr); status != 0 {
			return "", fmt.Errorf("cnibench %v: exit status %d: %s", args, status, stderr.String())
		}
		return stdout.String(), nil
	}, docs
}

// TestTourIsFresh: the outputs in docs/tour.md and the recording are those of this
// program on the recorded result.
func TestTourIsFresh(t *testing.T) {
	run, docs := unpacked(t)
	page, err := os.ReadFile(filepath.Join(docs, "tour.md"))
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := refresh(string(page), run)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), fresh); diff != "" {
		t.Errorf("docs/tour.md is stale: make build, then go run ./internal/repo/tour -without-pictures\n%s", diff)
	}
	recording, err := os.ReadFile(filepath.Join(docs, recordingFile))
	if err != nil {
		t.Fatal(err)
	}
	again, err := record(scenes(), run)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(recording, again) {
		t.Error("docs/tour/recording.svg is stale: make build, then go run ./internal/repo/tour -without-pictures")
	}
}

// TestTourShowsItsPictures: the page shows each picture and the recording, they are
// small, and nothing else is in their folder.
func TestTourShowsItsPictures(t *testing.T) {
	page, err := os.ReadFile("../../../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Base(recordingFile)}
	for _, p := range pictures() {
		want = append(want, filepath.Base(p.file))
	}
	entries, err := os.ReadDir("../../../docs/tour")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	size := int64(0)
	for _, e := range entries {
		have = append(have, e.Name())
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("docs/tour has %v, want %v", have, want)
	}
	if size > maxImages {
		t.Errorf("docs/tour has %d bytes, at most %d", size, maxImages)
	}
	for _, name := range want {
		if !strings.Contains(string(page), "(tour/"+name+")") && !strings.Contains(string(page), `"tour/`+name+`"`) {
			t.Errorf("docs/tour.md does not show %s", name)
		}
	}
}

// TestRecord: a recording is well-formed XML, has every word of its commands and the
// text of the outputs without escapes, and is as long as its scenes.
func TestRecord(t *testing.T) {
	svg, err := record([]string{"cnibench a", "cnibench b --c"}, func(args ...string) (string, error) {
		if !slices.Equal(args[len(args)-2:], []string{"--color", "always"}) {
			t.Errorf("%v", args)
		}
		return "\x1b[1mhead\x1b[0m  -5 % <" + args[0] + ">\n" + strings.Repeat("line\n", 2*rows), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := d.Token(); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
	}
	text := string(svg)
	for _, want := range []string{">cnibench</text>", ">--c</text>", `class="bold" x="16.0"`, ">-5 % &lt;a&gt;</text>", ">" + elided + "</text>",
		fmt.Sprintf("%.2fs step-end", 5*typeSeconds+2*readSeconds), "prefers-color-scheme:dark", "prefers-reduced-motion"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Count(text, ">line<") != 2*(rows-2) {
		t.Errorf("%d lines, or an escape", strings.Count(text, ">line<"))
	}
	if _, err := record([]string{"cnibench a"}, func(...string) (string, error) { return "", errors.New("no") }); err == nil {
		t.Error("a failed command is recorded")
	}
}

// TestRefresh: outputs are replaced, an elided one keeps its length, and blocks without
// an output stay.
func TestRefresh(t *testing.T) {
	run := func(args ...string) (string, error) { return strings.Join(args, " ") + "\n2\n3\n", nil }
	page := "a\n```console\n$ cnibench x y\nold\n```\n```console\n$ cnibench z\nold\nold\n…\n```\n```console\n$ sudo cnibench run\n```\nb\n"
	want := "a\n```console\n$ cnibench x y\nx y\n2\n3\n```\n```console\n$ cnibench z\nz\n2\n…\n```\n```console\n$ sudo cnibench run\n```\nb\n"
	got, err := refresh(page, run)
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	if _, err := refresh("```console\n$ ls\na\n```\n", run); err == nil {
		t.Error("the output of another program passes")
	}
}

// TestPackedResult: what is packed is what is unpacked, and only a result directory is.
func TestPackedResult(t *testing.T) {
	unpacked(t)
	if err := pack(latest, "again.tar.gz"); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile("again.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	if err := unpack(bytes.NewReader(packed), "again"); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(latest, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		have, err := os.ReadFile(filepath.Join("again", path))
		files++
		if err == nil && !bytes.Equal(have, want) {
			t.Errorf("%s has changed", path)
		}
		return err
	})
	if err != nil || files < 5 {
		t.Errorf("%d files: %v", files, err)
	}
	if err := pack(t.TempDir(), "empty.tar.gz"); err == nil {
		t.Error("an empty folder was packed")
	}
}

func TestReplaceOutput(t *testing.T) {
	page, err := replaceOutput("a\n```text\nold\n\nlines\n```\nb\n", "new\n")
	if want := "a\n```text\nnew\n```\nb\n"; err != nil || page != want {
		t.Errorf("%q, %v", page, err)
	}
	for _, page := range []string{"", "\n```text\nno end", "\n```text\na\n```\n\n```text\nb\n```\n"} {
		if _, err := replaceOutput(page, "new"); err == nil {
			t.Errorf("%q has one output", page)
		}
	}
}
