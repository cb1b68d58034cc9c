package campaign

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxFileBytes bounds a campaign file; a real one is about a kilobyte.
const maxFileBytes = 1 << 20

// maxDepth bounds the nesting within one line, so that a hostile file cannot
// exhaust the stack of a recursive parser. A campaign needs four levels.
const maxDepth = 16

// maxTokens bounds the work of the library's parser, which grows with the square
// of a mapping's size; a campaign has a few hundred words and signs.
const maxTokens = 50_000

// node is one value of the file: the part of YAML that a campaign uses, and
// nothing else.
type node struct {
	kind         nodeKind
	line, column int
	text         string  // of a scalar, as written
	items        []*node // of a list
	entries      []entry // of a mapping, in the file's order
}

type entry struct{ key, value *node }

type nodeKind string

const (
	kindMapping nodeKind = "a mapping"
	kindList    nodeKind = "a list"
	kindText    nodeKind = "text"
	kindNumber  nodeKind = "number"
	kindBool    nodeKind = "boolean"
	kindNull    nodeKind = "nothing"
)

// find follows keys (string) and indexes (int) down from n as far as they lead.
func (n *node) find(path ...any) *node {
	for _, step := range path {
		next := n.child(step)
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

func (n *node) child(step any) *node {
	switch step := step.(type) {
	case int:
		if step < len(n.items) {
			return n.items[step]
		}
	case string:
		for _, e := range n.entries {
			if e.key.text == step {
				return e.value
			}
		}
	}
	return nil
}

// describe says what a node is, for "found …".
func (n *node) describe() string {
	switch n.kind {
	case kindText:
		return fmt.Sprintf("text %q", clip(n.text))
	case kindNumber, kindBool:
		return string(n.kind) + " " + clip(n.text)
	default:
		return string(n.kind)
	}
}

// clip keeps a long value from filling the message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// decimal is how a number must be written. Octal, hexadecimal and 1_000 are
// read in different ways by different YAML parsers, so they are refused.
var decimal = regexp.MustCompile(`^[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)

// readYAML makes the tree of the one document in data. The errors have no file
// name and no source line yet.
func readYAML(data []byte) (root *node, errs []*Error) {
	at := func(line, column int, hint, format string, args ...any) {
		errs = append(errs, &Error{Line: max(line, 1), Column: max(column, 1), Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	if len(data) > maxFileBytes {
		at(1, 1, "a campaign is about a kilobyte: is this the right file?", "the file has more than %d bytes", maxFileBytes)
		return nil, errs
	}
	for i, line := range bytes.Split(data, []byte("\n")) {
		if column := notText(line); column > 0 {
			at(i+1, column, "save the file as UTF-8", "this is not UTF-8 text")
			return nil, errs
		}
	}
	// The library's own parser is not trusted with hostile input: where it
	// panics, that is an error of this file like any other.
	defer func() {
		if p := recover(); p != nil {
			root = nil
			at(1, 1, "simplify the file", "not readable as YAML (%v)", p)
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if guard(tokens, at); len(errs) > 0 {
		return nil, errs
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		line, column, message := syntaxError(err)
		at(line, column, "", "not valid YAML: %s", message)
		return nil, errs
	}
	body := document(file)
	if body == nil {
		at(1, 1, "see examples/quickstart.yaml for one", "the file is empty; expected a campaign")
		return nil, errs
	}
	return convert(body, at), errs
}

// notText is the column of the first character that is none, or 0.
func notText(line []byte) int {
	for column := 1; len(line) > 0; column++ {
		r, size := utf8.DecodeRune(line)
		if r == 0 || r == utf8.RuneError && size == 1 {
			return column
		}
		line = line[size:]
	}
	return 0
}

// report is how the steps of reading YAML report an error.
type report func(line, column int, hint, format string, args ...any)

// guard refuses what a campaign does not need and what makes YAML dangerous:
// aliases (a few lines can stand for gigabytes), tags, several documents, and
// nesting without end.
func guard(tokens token.Tokens, at report) {
	if len(tokens) > maxTokens {
		at(tokens[maxTokens].Position.Line, tokens[maxTokens].Position.Column, "split the campaign", "the file has more than %d words and signs", maxTokens)
		return
	}
	depth, dashes, dashLine, content := 0, 0, 0, false
	for _, t := range tokens {
		line, column := t.Position.Line, t.Position.Column
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			at(line, column, "write the value out", "anchors, aliases and merge keys are not taken")
		case token.TagType:
			at(line, column, "leave the tag out", "tags are not taken")
		case token.DirectiveType:
			at(line, column, "leave the line out", "YAML directives are not taken")
		case token.MappingKeyType:
			at(line, column, "write key: value", `keys written with "?" are not taken`)
		case token.DocumentHeaderType, token.DocumentEndType:
			if content && t.Next != nil {
				at(line, column, "write one campaign per file", "more than one YAML document")
			}
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			if line != dashLine {
				dashes, dashLine = 0, line
			}
			dashes++
		}
		if depth > maxDepth || dashes > maxDepth {
			at(line, column, "", "nested more than %d deep", maxDepth)
			return
		}
		content = content || t.Type != token.CommentType && t.Type != token.DocumentHeaderType
	}
}

func syntaxError(err error) (line, column int, message string) {
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) {
		return 1, 1, err.Error()
	}
	if t := syntax.GetToken(); t != nil && t.Position != nil {
		line, column = t.Position.Line, t.Position.Column
	}
	return line, column, strings.ReplaceAll(syntax.GetMessage(), "\t", `\t`)
}

// document is the body of the one document that is not empty.
func document(file *ast.File) ast.Node {
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.NullType && d.Body.Type() != ast.CommentType {
			return d.Body
		}
	}
	return nil
}

func convert(n ast.Node, at report) *node {
	if n == nil || n.GetToken() == nil {
		return &node{kind: kindNull}
	}
	t := n.GetToken()
	out := &node{line: t.Position.Line, column: t.Position.Column, text: t.Value}
	switch n := n.(type) {
	case *ast.MappingNode:
		return convertMapping(out, n.Values, at)
	case *ast.MappingValueNode:
		return convertMapping(out, []*ast.MappingValueNode{n}, at)
	case *ast.SequenceNode:
		out.kind = kindList
		for _, item := range n.Values {
			out.items = append(out.items, convert(item, at))
		}
	case *ast.NullNode:
		out.kind = kindNull
	case *ast.BoolNode:
		out.kind = kindBool
	case *ast.LiteralNode:
		out.kind, out.text = kindText, n.Value.Value
	default:
		out.kind = kindText
		quoted := t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
		if !quoted && (decimal.MatchString(t.Value) || n.Type() != ast.StringType) {
			out.kind = kindNumber
		}
	}
	return out
}

func convertMapping(out *node, values []*ast.MappingValueNode, at report) *node {
	out.kind, out.text = kindMapping, ""
	firstLine := make(map[string]int, len(values))
	for i, v := range values {
		t := v.Key.GetToken()
		key := &node{kind: kindText, line: t.Position.Line, column: t.Position.Column, text: t.Value}
		value := convert(v.Value, at)
		if value.kind == kindNull { // an absent value has no position of its own
			value.line, value.column = key.line, key.column
		}
		// A block mapping begins where its first key does, not at the colon.
		if i == 0 && (out.line > key.line || out.column > key.column) {
			out.line, out.column = key.line, key.column
		}
		if line, twice := firstLine[key.text]; twice {
			at(key.line, key.column, "write it once", "duplicate key %q, first in line %d", clip(key.text), line)
			continue
		}
		firstLine[key.text] = key.line
		out.entries = append(out.entries, entry{key, value})
	}
	return out
}

// number reads a decimal number; ok is false for what is none.
func (n *node) number() (value float64, ok bool) {
	if n.kind != kindNumber || !decimal.MatchString(n.text) {
		return 0, false
	}
	value, err := strconv.ParseFloat(n.text, 64)
	return value, err == nil
}
