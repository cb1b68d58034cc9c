package campaign

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// Tree is a YAML file read under the rules of campaign files. The files of a
// paper are read so, too.
type Tree struct {
	path  string
	lines []string
	root  *node
}

// ReadTree reads the one document in data. path names the file in errors, which
// are joined *Errors.
func ReadTree(path string, data []byte) (*Tree, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	t := &Tree{path: path, lines: strings.Split(string(data), "\n")}
	root, errs := readYAML(data)
	for i, e := range errs {
		errs[i] = t.name(e)
	}
	if root == nil && len(errs) == 0 {
		errs = append(errs, t.ErrorAt(nil, "", "the file is empty"))
	}
	t.root = root
	return t, JoinErrors(errs)
}

// Value is the tree as encoding/json would decode it.
func (t *Tree) Value() any { return t.root.value() }

// ErrorAt is what is wrong at the value that keys and indexes, as text, lead to,
// or as far as they lead.
func (t *Tree) ErrorAt(where []string, hint, message string) *Error {
	e := &Error{Line: 1, Column: 1, Message: message, Hint: hint}
	if n := t.root; n != nil {
		var at keyPath
		for _, step := range where {
			if i, err := strconv.Atoi(step); err == nil && n.kind == kindList && i < len(n.items) {
				at, n = at.with(i), n.items[i]
				continue
			}
			next := n.child(step)
			if next == nil {
				break
			}
			at, n = at.with(step), next
		}
		e.Line, e.Column = n.line, n.column
		if len(at) > 0 {
			e.Message = at.String() + ": " + message
		}
	}
	return t.name(e)
}

// name fills in the file and its line.
func (t *Tree) name(e *Error) *Error {
	e.File = t.path
	if e.Line <= len(t.lines) {
		e.Source = strings.TrimSuffix(t.lines[e.Line-1], "\r")
	}
	return e
}

// JoinErrors joins errors of one file in the order of their positions; nil of none.
func JoinErrors(errs []*Error) error {
	var all []error
	for _, e := range inOrder(errs) {
		all = append(all, e)
	}
	return errors.Join(all...)
}

// Suggest is the hint for an unknown name: the nearest known one, else all.
func Suggest(kind, name string, known []string) string { return suggest(kind, name, known) }
