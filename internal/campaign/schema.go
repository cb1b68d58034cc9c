package campaign

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// schema is a JSON Schema, draft 2020-12.
type schema map[string]any

// Schema is the JSON Schema of campaign files, for editors. It is made from the
// Go types and the table of keys that the parser uses. What it cannot say, the
// parser alone refuses: conflists that do not exist, max_blocks below
// min_blocks, networks that no path would measure, numbers of services or
// policies, or encryption, that nothing would be measured with, too many cells.
func Schema(known Known) ([]byte, error) {
	s := schemaOf(reflect.TypeFor[Campaign](), key{}, known)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "cnibench campaign"
	given := schema{}
	for _, name := range clusterGivens() {
		given[name] = false
	}
	given["networks"] = schema{"items": schema{"enum": []string{result.HostNetwork, Detected}}}
	s["allOf"] = []schema{
		{"if": schema{"required": []string{"families"}, "properties": schema{"families": schema{"contains": schema{"const": "ipv6"}}}},
			"then": schema{"properties": schema{"mtu": schema{"items": schema{"minimum": minIPv6MTU}}}}},
		{"if": schema{"required": []string{"testbed"}, "properties": schema{"testbed": schema{"const": Kubernetes}}},
			"then": schema{"properties": given},
			"else": schema{"required": []string{"networks"}, "properties": schema{"clusters": false, "pairs": false}}},
		{"if": schema{"required": []string{"testbed"}, "properties": schema{"testbed": schema{"enum": []string{Kubernetes, Hosts}}}},
			"else": schema{"properties": schema{"networks": schema{"items": schema{"not": schema{"const": Detected}}}}}},
	}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("campaign schema: %w", err)
	}
	return append(out, '\n'), nil
}

func schemaOf(t reflect.Type, k key, known Known) schema {
	switch t {
	case reflect.TypeFor[Cluster]():
		return objectSchema(t, clusterKeys(), known)
	case reflect.TypeFor[Network]():
		return networkSchema(known)
	case reflect.TypeFor[Workload]():
		return workloadsSchema(known)
	}
	switch t.Kind() {
	case reflect.Slice:
		s := schema{"type": "array", "items": schemaOf(t.Elem(), k, known), "minItems": max(1, k.minItems)}
		if !k.repeats {
			s["uniqueItems"] = true
		}
		return s
	case reflect.Struct:
		return objectSchema(t, keysOf(t, known), known)
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.String:
		return textSchema(k)
	case reflect.Int:
		return numberSchema("integer", k.bounds)
	default:
		return numberSchema("number", k.bounds)
	}
}

func objectSchema(t reflect.Type, keys []key, known Known) schema {
	properties, required := schema{}, []string{}
	for _, k := range keys {
		p := schemaOf(k.typeIn(t), k, known)
		p["description"] = k.doc
		if k.def != "" {
			p["default"] = literal(k.def)
		}
		properties[k.name] = p
		if k.required {
			required = append(required, k.name)
		}
	}
	return schema{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func textSchema(k key) schema {
	switch {
	case k.names != nil:
		return schema{"type": "string", "enum": k.names}
	case k.pattern != nil:
		return schema{"type": "string", "pattern": k.pattern.String()}
	default:
		return schema{"type": "string", "minLength": 1}
	}
}

func numberSchema(kind string, b bounds) schema {
	s := schema{"type": kind, "minimum": b.Min, "maximum": b.Max}
	if b.AboveMin {
		delete(s, "minimum")
		s["exclusiveMinimum"] = b.Min
	}
	if b.BelowMax {
		delete(s, "maximum")
		s["exclusiveMaximum"] = b.Max
	}
	return s
}

// networkSchema is a name that is built in, alone or in a mapping, or a network
// of the user's own.
func networkSchema(known Known) schema {
	names := closed(known.Networks)
	own := objectSchema(reflect.TypeFor[Network](), networkKeys(), known)
	own["oneOf"] = []schema{{"required": []string{"conflist"}}, {"required": []string{"conflists"}}}
	name := own["properties"].(schema)["name"].(schema)
	name["not"] = schema{"enum": names}
	builtIn := schema{"type": "object", "required": []string{"name"}, "additionalProperties": false,
		"properties": schema{"name": schema{"enum": names}}}
	return schema{"anyOf": []schema{{"enum": append(names, Detected)}, builtIn, own}}
}

// workloadsSchema has one alternative for each workload, with the keys that it
// takes, so that an editor offers those and no others.
func workloadsSchema(known Known) schema {
	alternatives := []schema{}
	for _, spec := range known.Workloads {
		alternatives = append(alternatives, workloadSchema(spec, known))
	}
	return schema{"anyOf": alternatives}
}

func workloadSchema(spec workload.Spec, known Known) schema {
	var keys []key
	for _, k := range workloadKeys(known) {
		if !takes(spec, k.name) {
			continue
		}
		switch k.name {
		case "name":
			k.names = []string{spec.Name}
			if spec.Summary != "" {
				k.doc = spec.Summary
			}
		case "test":
			k.names = spec.Tests
		case "protocol":
			k.names = spec.Protocols
		case "message_bytes", "response_bytes":
			if isUDP(spec.Name) {
				k.bounds.Max = maxUDPPayload
			}
		}
		keys = append(keys, k)
	}
	s := objectSchema(reflect.TypeFor[Workload](), keys, known)
	if rules := datagramRules(spec); len(rules) > 0 {
		s["allOf"] = rules
	}
	return s
}

// datagramRules bound the sizes where the choice of a test or protocol makes
// them those of datagrams.
func datagramRules(spec workload.Spec) []schema {
	small := schema{"items": schema{"maximum": maxUDPPayload}}
	then := schema{"properties": schema{"message_bytes": small, "response_bytes": small}}
	var rules []schema
	for _, name := range []string{"test", "protocol"} {
		values := spec.Tests
		if name == "protocol" {
			values = spec.Protocols
		}
		var datagrams []string
		for _, v := range values {
			if isUDP(v) {
				datagrams = append(datagrams, v)
			}
		}
		if len(datagrams) > 0 {
			rules = append(rules, schema{"then": then, "if": schema{"required": []string{name},
				"properties": schema{name: schema{"contains": schema{"enum": datagrams}}}}})
		}
	}
	return rules
}

// fieldOf is the struct field with that name in its json tag.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); strings.Split(f.Tag.Get("json"), ",")[0] == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// typeIn is the type of a key's value in a mapping that becomes a t.
func (k key) typeIn(t reflect.Type) reflect.Type {
	if k.typ != nil {
		return k.typ
	}
	f, _ := fieldOf(t, k.name)
	return f.Type
}

// literal is the value of a YAML text of ours, or nil.
func literal(text string) any {
	n, errs := readYAML([]byte(text))
	if n == nil || len(errs) > 0 {
		return nil
	}
	return n.value()
}

// value is a node as encoding/json would decode it.
func (n *node) value() any {
	switch n.kind {
	case kindMapping:
		m := make(map[string]any, len(n.entries))
		for _, e := range n.entries {
			m[e.key.text] = e.value.value()
		}
		return m
	case kindList:
		l := make([]any, len(n.items))
		for i, item := range n.items {
			l[i] = item.value()
		}
		return l
	case kindNumber:
		if v, ok := n.number(); ok {
			return v
		}
		return n.text
	case kindBool:
		return strings.EqualFold(n.text, "true")
	case kindNull:
		return nil
	default:
		return n.text
	}
}
