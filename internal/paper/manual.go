package paper

import (
	"fmt"
	"reflect"
	"strings"
)

// Manual is the part of docs/adding-a-paper.md that is made from the types: what
// each key is.
func Manual() []byte {
	var b strings.Builder
	for _, part := range []struct {
		title string
		of    reflect.Type
	}{
		{"paper.yaml", reflect.TypeFor[Publication]()}, {"setup", reflect.TypeFor[Setup]()}, {"tables", reflect.TypeFor[Table]()},
		{"ours", reflect.TypeFor[Ours]()}, {"columns", reflect.TypeFor[Column]()}, {"rows", reflect.TypeFor[Row]()},
		{"claims.yaml: claims", reflect.TypeFor[Claim]()}, {"claims.yaml: without_claim", reflect.TypeFor[Sentence]()},
	} {
		fmt.Fprintf(&b, "\n### %s\n\n| key | type | what it is |\n|---|---|---|\n", part.title)
		for f := range fields(part.of) {
			must := ""
			if f.field.Tag.Get("required") != "" {
				must = ", required"
			}
			doc := f.field.Tag.Get("doc")
			if names := f.field.Tag.Get("enum"); names != "" {
				doc += " One of `" + strings.ReplaceAll(names, ",", "`, `") + "`."
			}
			fmt.Fprintf(&b, "| `%s` | %s%s | %s |\n", f.name, kindOf(f.field.Type), must, doc)
		}
	}
	b.WriteString("\n### relations\n\n| relation | takes | may take | what it says |\n|---|---|---|---|\n")
	for _, r := range relations() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.name, keyNames(r.takes), keyNames(r.may), r.doc)
	}
	return []byte(b.String())
}

// keyNames writes keys as code.
func keyNames(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return "`" + strings.Join(keys, "`, `") + "`"
}

// kindOf is a type in the words of a person.
func kindOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[Selector]():
		return "factors"
	case t.Kind() == reflect.Pointer:
		return kindOf(t.Elem())
	case t.Kind() == reflect.Slice:
		return "list of " + kindOf(t.Elem())
	case t.Kind() == reflect.Struct:
		return "mapping"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Int:
		return "whole number"
	}
	return "number"
}
