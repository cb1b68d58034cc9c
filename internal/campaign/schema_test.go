package campaign

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// notInSchema are the wrong campaigns that the schema lets pass, with the reason.
func notInSchema() map[string]string {
	const yaml, files, two = "a schema sees values, not how YAML writes them", "a schema reads no other file", "JSON Schema cannot compare two values"
	return map[string]string{
		"aliases": yaml, "duplicate-key": yaml, "empty": yaml, "only-comment": yaml, "not-utf8": yaml, "question-key": yaml,
		"syntax-colon": yaml, "syntax-indent": yaml, "syntax-open-list": yaml, "syntax-tab": yaml, "tags": yaml, "two-documents": yaml,
		"conflist-folder": files, "conflist-missing": files, "conflist-content": files,
		"blocks-order": two, "blocks-default": two,
		"services-without-path": two, "encryption-inside-a-node": two, "encryption-of-the-baseline": two, "encryption-on-a-cluster": two, "services-from-host": two, "policies-without-network": two,
		"pairs-paths": two, "switch-alone": two, "three-nodes": two, "path-without-host": two, "clusters-without-detected": two, "network-without-path": two,
	}
}

func TestSchemaAndParserAgree(t *testing.T) {
	known := testKnown()
	schema := compiled(t, known)
	excepted := notInSchema()
	paths := slices.Concat(files(t, "testdata/good/*.yaml"), files(t, "testdata/bad/*.yaml"))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, parseErr := Parse(path, data, known)
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		root, errs := readYAML(bytes.TrimPrefix(data, []byte("\ufeff")))
		var schemaErr error
		if root != nil && len(errs) == 0 {
			schemaErr = schema.Validate(root.value())
		}
		reason, isException := excepted[name]
		delete(excepted, name)
		switch {
		case isException && (schemaErr != nil || parseErr == nil):
			t.Errorf("%s is listed as beyond the schema (%s): schema %v, parser %v", path, reason, schemaErr, parseErr)
		case !isException && (schemaErr == nil) != (parseErr == nil):
			t.Errorf("%s: schema and parser disagree: schema %v, parser %v", path, schemaErr, parseErr)
		}
	}
	for name := range excepted {
		t.Errorf("%s.yaml is listed and does not exist", name)
	}
}

func compiled(t testing.TB, known Known) *jsonschema.Schema {
	t.Helper()
	text, err := Schema(known)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("campaign.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("campaign.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// The table of keys and the Go types hold the same keys, every default and
// example is one that the parser takes, and everything is described.
func TestKeysAreTheFields(t *testing.T) {
	known := testKnown()
	for _, typ := range []reflect.Type{reflect.TypeFor[Campaign](), reflect.TypeFor[Network](), reflect.TypeFor[Path](), reflect.TypeFor[Workload](), reflect.TypeFor[Sampling]()} {
		var fields, keys []string
		for i := range typ.NumField() {
			if name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ","); name != "-" {
				fields = append(fields, name)
			}
		}
		for _, k := range keysOf(typ, known) {
			if k.typ == nil { // the others are factors
				keys = append(keys, k.name)
			}
			if _, ok := fieldOf(typ, k.name); !ok && k.typ == nil {
				continue
			}
			if k.doc == "" || k.kind == "" || k.required && (k.def != "" || k.defDoc != "") {
				t.Errorf("%s.%s is not well described: %+v", typ.Name(), k.name, k)
			}
			for _, text := range []string{k.def, k.example} {
				decodes(t, typ.Name()+"."+k.name, text, k.typeIn(typ), k)
			}
		}
		if !slices.Equal(fields, keys) {
			t.Errorf("%s has the fields %v and the keys %v", typ.Name(), fields, keys)
		}
	}
}

func decodes(t *testing.T, name, text string, typ reflect.Type, k key) {
	t.Helper()
	if text == "" {
		return
	}
	n, errs := readYAML([]byte(text))
	if n == nil || len(errs) > 0 {
		t.Errorf("%s: %q: %v", name, text, errs)
		return
	}
	d := &decoder{known: testKnown(), root: n, failed: map[string]bool{}}
	d.decode(n, reflect.New(typ).Elem(), k, nil)
	for _, e := range d.errs {
		t.Errorf("%s: %q: %v", name, text, e)
	}
}
