package fault

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Step is one change of the files below a folder, as a program asked the kernel for it, or
// a wait until changes are on the disk.
type Step struct {
	Kind     string
	Path, To string // absolute; To: of a rename
	At       int64  // offset of a write, length after a truncation
	Data     []byte // of a write
}

// The kinds of Step. A folder is removed with all that is in it.
const (
	Mkdir      = "mkdir"
	Create     = "create"
	Write      = "write"
	Truncate   = "truncate"
	Rename     = "rename"
	Remove     = "remove"
	Sync       = "sync"
	SyncFolder = "sync folder"
)

// Tree is what is below a folder: the contents of each file by its path relative to that;
// paths of folders end with a slash.
type Tree map[string]string

// ReadTree reads what is below a folder.
func ReadTree(root string) (Tree, error) {
	tree := Tree{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(root, path)
		if err = errors.Join(err, relErr); err != nil || rel == "." {
			return err
		}
		if d.IsDir() {
			tree[rel+"/"] = ""
			return nil
		}
		data, err := os.ReadFile(path)
		tree[rel] = string(data)
		return err
	})
	return tree, err
}

// Write makes the files of a tree below a folder.
func (t Tree) Write(root string) error {
	for _, path := range t.paths() {
		at := filepath.Join(root, path)
		var err error
		if strings.HasSuffix(path, "/") {
			err = os.MkdirAll(at, 0o755)
		} else {
			err = os.WriteFile(at, []byte(t[path]), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t Tree) paths() []string {
	var all []string
	for path := range t {
		all = append(all, path)
	}
	slices.Sort(all) // a folder is before what is in it
	return all
}

// Key is the same for trees that are the same.
func (t Tree) Key() string {
	var b strings.Builder
	for _, path := range t.paths() {
		fmt.Fprintf(&b, "%q %q\n", path, t[path])
	}
	return b.String()
}

// node is a file or a folder. What is only in memory is lost with the power.
type node struct {
	names   map[string]*node // of a folder, as they are on the disk; nil: it is a file
	changes []change         // of names, in memory
	data    []byte           // of a file, as it is on the disk
	writes  []Step           // of a file, in memory
}

// change is a name that appears, one that goes, or both at once: a rename.
type change struct {
	add, drop string
	node      *node
}

// Disk is a file system that forgets what was not synced. Files and folders below its root
// keep to the weakest promise of POSIX: contents are safe after a sync of the file, names
// after a sync of their folder, and what is not synced reaches the disk in any order or not
// at all. A rename is never half done.
type Disk struct {
	root string
	top  *node
}

// NewDisk makes an empty disk that stands for a folder.
func NewDisk(root string) *Disk {
	return &Disk{root: filepath.Clean(root), top: &node{names: map[string]*node{}}}
}

// Do takes one step.
func (d *Disk) Do(s Step) error {
	if s.Kind == SyncFolder {
		folder, err := d.at(s.Path)
		if err == nil {
			folder.names, folder.changes = folder.view(nil), nil
		}
		return err
	}
	dir, err := d.at(filepath.Dir(s.Path))
	if err != nil {
		return err
	}
	name := filepath.Base(s.Path)
	file := dir.view(nil)[name]
	if file != nil && (s.Kind == Mkdir || s.Kind == Create) {
		return nil // the kernel refuses it, and nothing changes
	}
	if file == nil && s.Kind != Mkdir && s.Kind != Create {
		return fmt.Errorf("%s: %s: %w", s.Kind, s.Path, fs.ErrNotExist)
	}
	switch s.Kind {
	case Mkdir:
		dir.changes = append(dir.changes, change{add: name, node: &node{names: map[string]*node{}}})
	case Create:
		dir.changes = append(dir.changes, change{add: name, node: &node{}})
	case Write, Truncate:
		file.writes = append(file.writes, s)
	case Sync:
		file.data, file.writes = file.contents(whole), nil
	case Remove:
		dir.changes = append(dir.changes, change{drop: name})
	case Rename:
		if filepath.Dir(s.To) != filepath.Dir(s.Path) {
			return fmt.Errorf("rename: %s to another folder, %s", s.Path, s.To)
		}
		dir.changes = append(dir.changes, change{drop: name, add: filepath.Base(s.To), node: file})
	default:
		return fmt.Errorf("no kind of step: %q", s.Kind)
	}
	return nil
}

// at is the folder at a path, as a running program sees it.
func (d *Disk) at(path string) (*node, error) {
	rel, err := filepath.Rel(d.root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("%s is not below %s", path, d.root)
	}
	n := d.top
	for _, name := range strings.Split(rel, "/") {
		if name == "." {
			continue
		}
		if n = n.view(nil)[name]; n == nil || n.names == nil {
			return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
		}
	}
	return n, nil
}

// view is the names of a folder of whose changes in memory only some were carried out; nil:
// all.
func (n *node) view(done func(i, of int) bool) map[string]*node {
	names := maps.Clone(n.names)
	for i, c := range n.changes {
		if done != nil && !done(i, len(n.changes)) {
			continue
		}
		if c.drop != "" {
			delete(names, c.drop)
		}
		if c.add != "" {
			names[c.add] = c.node
		}
	}
	return names
}

// fate is what a loss of power does to contents that were not synced.
type fate int

const (
	whole fate = iota // all were on the disk already
	lost              // none were
	half              // the last write was half done
	zeros             // the lengths were on the disk, and the contents not
)

// contents is a file after a fate.
func (n *node) contents(f fate) []byte {
	data := bytes.Clone(n.data)
	if f == lost {
		return data
	}
	for i, s := range n.writes {
		if s.Kind == Truncate {
			data = resized(data, s.At)
			continue
		}
		b := s.Data
		if f == half && i == len(n.writes)-1 {
			b = b[:len(b)/2]
		}
		if end := s.At + int64(len(b)); end > int64(len(data)) {
			data = resized(data, end)
		}
		if f != zeros {
			copy(data[s.At:], b)
		}
	}
	return data
}

func resized(data []byte, size int64) []byte {
	if size <= int64(len(data)) {
		return data[:size]
	}
	return append(data, make([]byte, size-int64(len(data)))...)
}

// Now is what a running program sees.
func (d *Disk) Now() Tree {
	tree := Tree{}
	d.top.collect(tree, "", nil, whole)
	return tree
}

// collect puts what is in a folder into a tree.
func (n *node) collect(tree Tree, prefix string, done func(i, of int) bool, f fate) {
	for name, to := range n.view(done) {
		if to.names == nil {
			tree[prefix+name] = string(to.contents(f))
			continue
		}
		tree[prefix+name+"/"] = ""
		to.collect(tree, prefix+name+"/", done, f)
	}
}

// Losses are states that a loss of power now could leave: of names that are not synced
// none, all, each alone and all but each, with every fate of the contents.
func (d *Disk) Losses() []Tree {
	most := d.top.pending()
	some := []func(i, of int) bool{nil, func(int, int) bool { return false }}
	for k := range most {
		some = append(some, func(i, _ int) bool { return i == k }, func(i, _ int) bool { return i != k })
	}
	var all []Tree
	seen := map[string]bool{}
	for _, done := range some {
		for _, f := range []fate{whole, lost, half, zeros} {
			tree := Tree{}
			d.top.collect(tree, "", done, f)
			if key := tree.Key(); !seen[key] {
				seen[key] = true
				all = append(all, tree)
			}
		}
	}
	return all
}

// pending is the largest number of changes of one folder that are not synced.
func (n *node) pending() int {
	most := len(n.changes)
	for _, to := range n.view(nil) {
		if to.names != nil {
			most = max(most, to.pending())
		}
	}
	return most
}
