package result

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// stacksSuffix ends the name of a file of folded stacks.
const stacksSuffix = ".folded.gz"

// SaveStacks keeps an end's kernel stacks below raw/<sample>/, compressed: lines
// of "outer;inner 1234", the CPU time in microseconds behind each.
func (d *Dir) SaveStacks(sample, end, folded string) error {
	dir, err := d.rawDir(sample)
	if err != nil {
		return err
	}
	var packed strings.Builder
	w := gzip.NewWriter(&packed)
	_, err = io.WriteString(w, folded)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return d.disk.writeFile(filepath.Join(dir, end+stacksSuffix), []byte(packed.String()))
}

// Stack is a call chain, the outermost function first, and the CPU time in
// microseconds that was spent there.
type Stack struct {
	Frames       []string
	Microseconds int64
}

// EachStack hands the stacks of both ends of a sample to f. A sample without any
// has none: that is no error.
func EachStack(dir string, s *Sample, f func(Stack)) error {
	if s.Raw == "" {
		return nil
	}
	if !filepath.IsLocal(s.Raw) {
		return fmt.Errorf("record %s: raw is %q, which is no folder of the result directory", s.ID, s.Raw)
	}
	for _, end := range []string{"client", "server"} {
		path := filepath.Join(dir, filepath.FromSlash(s.Raw), end+stacksSuffix)
		file, err := open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = readStacks(file, f)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func readStacks(packed io.Reader, f func(Stack)) error {
	r, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		stack, err := parseStack(lines.Text())
		if err != nil {
			return err
		}
		f(stack)
	}
	return lines.Err()
}

func parseStack(line string) (Stack, error) {
	at := strings.LastIndexByte(line, ' ')
	if at <= 0 {
		return Stack{}, fmt.Errorf("no stack: %.200q", line)
	}
	us, err := strconv.ParseInt(line[at+1:], 10, 64)
	if err != nil || us < 0 {
		return Stack{}, fmt.Errorf("no stack: %.200q", line)
	}
	return Stack{Frames: strings.Split(line[:at], ";"), Microseconds: us}, nil
}
