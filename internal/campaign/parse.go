package campaign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
)

// Load reads and parses a campaign file. The error says all that is wrong in
// it: each one is an *Error, joined in the order of the file.
func Load(path string, known Known) (Campaign, error) {
	data, err := Read(path)
	if err != nil {
		return Campaign{}, err
	}
	return Parse(path, data, known)
}

// Read reads the text of a campaign file.
func Read(path string) ([]byte, error) {
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("campaign %s: %w: name another file, or write one with cnibench init --to %s", path, fs.ErrNotExist, path)
	}
	if err != nil {
		return nil, fmt.Errorf("campaign: %w", err)
	}
	return data, nil
}

// readFile reads a regular file; of one that is too large only as much as
// shows that.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would wait, a device never end
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}

// Parse reads a campaign, fills in every default and checks it against what is
// known. Conflists are read relative to path, which also names the file in
// errors. The error joins an *Error for each thing that is wrong.
func Parse(path string, data []byte, known Known) (Campaign, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	root, errs := readYAML(data)
	var c Campaign
	if root != nil {
		d := &decoder{known: known, root: root, failed: map[string]bool{}}
		d.decode(root, reflect.ValueOf(&c).Elem(), key{kind: "campaign"}, nil)
		d.check(&c)
		if !known.Recorded {
			d.conflists(&c, path)
		}
		errs = append(errs, d.errs...)
	}
	if len(errs) == 0 {
		return c, nil
	}
	return Campaign{}, located(path, data, errs)
}

// located joins the errors of a file, each with its line.
func located(path string, data []byte, errs []*Error) error {
	lines := strings.Split(string(data), "\n")
	var all []error
	for _, e := range inOrder(errs) {
		e.File = path
		if e.Line <= len(lines) {
			e.Source = strings.TrimSuffix(lines[e.Line-1], "\r")
		}
		all = append(all, e)
	}
	return errors.Join(all...)
}
