package paper

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// object is a JSON Schema, draft 2020-12.
type object = map[string]any

// PublicationSchema is the JSON Schema of paper.yaml, for editors; it is what the
// loader itself checks the file with.
func PublicationSchema() ([]byte, error) {
	return schemaText(reflect.TypeFor[Publication](), "a paper of cnibench: paper.yaml")
}

// ClaimsSchema is that of claims.yaml.
func ClaimsSchema() ([]byte, error) {
	return schemaText(reflect.TypeFor[Claims](), "a paper of cnibench: claims.yaml")
}

func schemaText(t reflect.Type, title string) ([]byte, error) {
	s := schemaOf(t)
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", title
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("paper schema: %w", err)
	}
	return append(out, '\n'), nil
}

// schemaOf is made from a type's fields and their tags.
func schemaOf(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[Selector]():
		return selectorSchema()
	case t == reflect.TypeFor[Claim]():
		return claimSchema(structSchema(t))
	case t == reflect.TypeFor[Table]():
		s := structSchema(t)
		s["oneOf"] = []object{needs("ours"), needs("not_yet"), needs("no_data")}
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Slice:
		items := schemaOf(t.Elem())
		if t.Elem().Kind() == reflect.Pointer { // a value that may be absent
			items = object{"type": []string{"number", "null"}}
		}
		return object{"type": "array", "items": items, "minItems": 1}
	case reflect.Struct:
		return structSchema(t)
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	default:
		return object{"type": "string", "minLength": 1}
	}
}

func structSchema(t reflect.Type) object {
	properties, required := object{}, []string{}
	for f := range fields(t) {
		p := schemaOf(f.field.Type)
		p["description"] = f.field.Tag.Get("doc")
		if names := f.field.Tag.Get("enum"); names != "" {
			p["enum"] = strings.Split(names, ",")
		}
		if pattern := f.field.Tag.Get("pattern"); pattern != "" {
			p["pattern"] = pattern
		}
		if above, err := strconv.ParseFloat(f.field.Tag.Get("above"), 64); err == nil {
			p["exclusiveMinimum"] = above
		}
		properties[f.name] = p
		if f.field.Tag.Get("required") != "" {
			required = append(required, f.name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// keyed is a struct's field and the key that it has in YAML.
type keyed struct {
	name  string
	field reflect.StructField
}

// fields gives the keys of a type in their order.
func fields(t reflect.Type) func(yield func(keyed) bool) {
	return func(yield func(keyed) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !yield(keyed{name, f}) {
				return
			}
		}
	}
}

// selectorSchema is a mapping of factors to values, or to lists of them.
func selectorSchema() object {
	scalar := []string{"string", "number", "boolean"}
	return object{"type": "object", "minProperties": 1, "additionalProperties": object{
		"type": append([]string{"array"}, scalar...), "minItems": 1, "items": object{"type": scalar}}}
}

// claimSchema adds what belongs to each relation.
func claimSchema(s object) object {
	s["oneOf"] = []object{needs("not_yet"), needs("metric", "left", "relation")}
	var rules []object
	var names []string
	for _, r := range relations() {
		names = append(names, r.name)
		rule := object{"if": object{"required": []string{"relation"}, "properties": object{"relation": object{"const": r.name}}},
			"then": object{"required": append([]string{}, r.takes...)}}
		rules = append(rules, rule)
	}
	s["properties"].(object)["relation"].(object)["enum"] = names
	s["allOf"] = rules
	return s
}

func needs(keys ...string) object { return object{"required": keys} }

// compile makes the validator of a type.
func compile(t reflect.Type) (*jsonschema.Schema, error) {
	text, err := schemaText(t, t.Name())
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("paper.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("paper.json")
}
