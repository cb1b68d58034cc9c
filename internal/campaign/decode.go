package campaign

import (
	"fmt"
	"math"
	"reflect"
	"strings"
)

// decoder fills the Go types from the tree and collects what is wrong.
type decoder struct {
	known Known
	root  *node
	errs  []*Error
	// failed are the paths with an error in or below them, so that no check is
	// built on those.
	failed map[string]bool
}

// keyPath is the way from the root to a value: keys (string) and indexes (int).
type keyPath []any

// String writes a path as people do: workloads[0].streams[1].
func (p keyPath) String() string {
	var b strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

func (p keyPath) with(step any) keyPath { return append(p[:len(p):len(p)], step) }

// failAt reports an error at a node.
func (d *decoder) failAt(n *node, where keyPath, hint, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if len(where) > 0 {
		message = where.String() + ": " + message
	}
	for i := range len(where) + 1 {
		d.failed[where[:i].String()] = true
	}
	d.errs = append(d.errs, &Error{Line: n.line, Column: n.column, Message: message, Hint: hint})
}

// fail reports an error at a value, or where a missing value would be.
func (d *decoder) fail(where keyPath, hint, format string, args ...any) {
	d.failAt(d.root.find(where...), where, hint, format, args...)
}

// good reports whether a value, and all below it, was decoded.
func (d *decoder) good(where keyPath) bool { return !d.failed[where.String()] }

func (d *decoder) decode(n *node, v reflect.Value, k key, where keyPath) {
	switch v.Kind() {
	case reflect.Slice:
		d.list(n, v, k, where)
	case reflect.Struct:
		if _, isNetwork := v.Interface().(Network); isNetwork && n.kind == kindText {
			d.text(n, v.FieldByName("Name"), k, where)
			return
		}
		d.mapping(n, v, k, where)
	case reflect.String:
		d.text(n, v, k, where)
	case reflect.Bool:
		if n.kind != kindBool {
			d.wrongKind(n, where, "true or false")
			return
		}
		v.SetBool(strings.EqualFold(n.text, "true"))
	default:
		d.number(n, v, k, where)
	}
}

func (d *decoder) wrongKind(n *node, where keyPath, expected string) {
	hint := ""
	switch {
	case n.kind == kindNull:
		hint = "give it a value, or leave the key out"
	case expected == "text":
		if n.kind == kindNumber || n.kind == kindBool {
			hint = fmt.Sprintf("write it in quotes: %q", clip(n.text))
		}
	case strings.HasPrefix(expected, "a list") && (n.kind == kindText || n.kind == kindNumber || n.kind == kindBool):
		hint = fmt.Sprintf("write a list: [%s]", clip(n.text))
	case strings.HasPrefix(expected, "a list") && n.kind == kindMapping:
		hint = "put a dash before it"
	case strings.Contains(expected, "number") && n.kind == kindText && decimal.MatchString(n.text):
		hint = "write it without quotes"
	}
	d.failAt(n, where, hint, "expected %s, found %s", expected, n.describe())
}

func (d *decoder) list(n *node, v reflect.Value, k key, where keyPath) {
	if n.kind != kindList {
		d.wrongKind(n, where, "a list")
		return
	}
	if least := max(k.minItems, 1); len(n.items) < least {
		d.failAt(n, where, "for example "+k.name+": "+k.example, "expected a list with at least %s, found %s", count(least), count(len(n.items)))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	first := make(map[string]int, len(n.items))
	for i, item := range n.items {
		here := where.with(i)
		before := len(d.errs)
		d.decode(item, out.Index(i), k, here)
		if len(d.errs) > before {
			continue
		}
		same := identity(out.Index(i))
		if j, twice := first[same]; twice && !k.repeats {
			d.failAt(item, here, "write it once", "duplicate %s, the same as %s", k.kind, where.with(j))
			continue
		}
		first[same] = i
	}
	v.Set(out)
}

func count(values int) string {
	if values == 1 {
		return "1 value"
	}
	return fmt.Sprintf("%d values", values)
}

// identity is what makes two values of a list the same: of a network its name.
func identity(v reflect.Value) string {
	if n, ok := v.Interface().(Network); ok {
		return n.Name
	}
	if c, ok := v.Interface().(Cluster); ok {
		return c.Name
	}
	return fmt.Sprintf("%#v", v.Interface())
}

func (d *decoder) mapping(n *node, v reflect.Value, k key, where keyPath) {
	if n.kind != kindMapping {
		expected := "a mapping"
		if k.kind == "network" {
			expected = "a name or a mapping"
		}
		d.wrongKind(n, where, expected)
		return
	}
	keys := keysOf(v.Type(), d.known)
	byName := make(map[string]key, len(keys))
	var names []string
	for _, k := range keys {
		byName[k.name] = k
		names = append(names, k.name)
	}
	given := make(map[string]bool, len(n.entries))
	for _, e := range n.entries {
		k, ok := byName[e.key.text]
		if !ok {
			d.failAt(e.key, where, suggest("key", e.key.text, names), "unknown key %q", clip(e.key.text))
			continue
		}
		given[k.name] = true
		if k.typ != nil {
			d.values(e.value, v.Addr().Interface().(*Workload), k, where.with(k.name))
			continue
		}
		d.decode(e.value, field(v, k), k, where.with(k.name))
	}
	for _, k := range keys {
		switch {
		case given[k.name]:
		case k.required:
			d.failAt(n, where, "for example "+k.name+": "+k.example, "missing key %q", k.name)
		case k.def != "":
			d.preset(field(v, k), k)
		}
	}
}

// values reads the values of a workload's factor.
func (d *decoder) values(n *node, w *Workload, k key, where keyPath) {
	list := reflect.New(k.typ).Elem()
	d.decode(n, list, k, where)
	var values []any
	for i := range list.Len() {
		values = append(values, list.Index(i).Interface())
	}
	if values != nil {
		w.set(k.name, values...)
	}
}

// preset fills in a default. A default is ours, so an error in it would be a
// mistake in keys.go, which a test excludes.
func (d *decoder) preset(v reflect.Value, k key) {
	n, errs := readYAML([]byte(k.def))
	if n == nil || len(errs) > 0 {
		return
	}
	k.names = nil // a default may be known elsewhere only
	(&decoder{known: d.known, root: n, failed: map[string]bool{}}).decode(n, v, k, nil)
}

// field is where a key's value goes.
func field(v reflect.Value, k key) reflect.Value {
	f, _ := fieldOf(v.Type(), k.name)
	return v.FieldByIndex(f.Index)
}

func (d *decoder) text(n *node, v reflect.Value, k key, where keyPath) {
	switch {
	case n.kind != kindText:
		d.wrongKind(n, where, "text")
	case n.text == "":
		d.failAt(n, where, "", "expected a %s, found nothing", k.kind)
	case k.pattern != nil && !k.pattern.MatchString(n.text):
		d.failAt(n, where, "", "%s %q is not possible; expected %s", k.kind, clip(n.text), k.patternDoc)
	case k.names != nil && !contains(k.names, n.text):
		d.failAt(n, where, suggest(k.kind, n.text, k.names), "unknown %s %q", k.kind, clip(n.text))
	default:
		v.SetString(n.text)
	}
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func (d *decoder) number(n *node, v reflect.Value, k key, where keyPath) {
	whole := v.Kind() == reflect.Int
	expected := "a number " + k.bounds.String()
	if whole {
		expected = "a whole number " + k.bounds.String()
	}
	if n.kind != kindNumber {
		d.wrongKind(n, where, expected)
		return
	}
	value, ok := n.number()
	switch {
	case !ok && decimal.MatchString(n.text):
		d.failAt(n, where, "", "expected %s, found %s", expected, clip(n.text))
	case !ok:
		d.failAt(n, where, "write it as a plain decimal number", "expected %s, found %s", expected, clip(n.text))
	case whole && value != math.Trunc(value), !k.bounds.Hold(value):
		d.failAt(n, where, "", "expected %s, found %s", expected, clip(n.text))
	case whole:
		v.SetInt(int64(value))
	default:
		v.SetFloat(value)
	}
}
