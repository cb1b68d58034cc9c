package campaign

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/cnibench/cnibench/internal/workload"
)

// Manual is docs/campaign.md: every key of a campaign file, from the table that
// the parser uses. example is a whole campaign.
func Manual(known Known, example string) string {
	var b strings.Builder
	b.WriteString(`<!-- Made from internal/campaign/keys.go and internal/result/factor_table.go: go test ./internal/campaign -update -->
# The campaign file

A campaign is a matrix. Each combination of network, path, link, profile, MTU, address family and workload is a *cell*. cnibench measures one sample of every cell in random order (a *block*). It measures further blocks until every efficiency is known precisely enough.

`)
	fmt.Fprintf(&b, "```yaml\n%s```\n\n", example)
	b.WriteString("`cnibench run FILE --dry-run` shows the cells, their order and the expected time, and measures nothing. " +
		"Editors check and complete a campaign with the [JSON Schema](campaign.schema.json). If your editor uses yaml-language-server, begin the file with\n\n" +
		"```yaml\n# yaml-language-server: $schema=docs/campaign.schema.json\n```\n\n" +
		"cnibench reads the file strictly. An unknown key, a wrong type or an impossible value is an error that names the line, the column and the expected value. cnibench reports all errors at once. " +
		"Where a key takes a list, write a list, even with one value. Numbers are plain decimals (`1500`, `0.5`, `1e9`). One file holds one campaign. Anchors, aliases and tags are refused.\n")
	section(&b, "Keys", reflect.TypeFor[Campaign](), known)
	b.WriteString("\nTo measure your own network, name its CNI configuration. cnibench attaches pods with its plugins, as for a built-in network:\n\n" +
		"```yaml\nnetworks:\n  - host\n  - {name: mine, conflist: ./10-mine.conflist}\n```\n")
	b.WriteString("\n`clusters` lists the clusters of testbed kubernetes; [kubernetes.md](kubernetes.md) has examples.\n")
	section(&b, "clusters", reflect.TypeFor[Cluster](), known)
	section(&b, "networks", reflect.TypeFor[Network](), known)
	section(&b, "paths", reflect.TypeFor[Path](), known)
	section(&b, "workloads", reflect.TypeFor[Workload](), known)
	b.WriteString("\ncnibench combines every value of `test`, `protocol`, `message_bytes` … with every other. A workload takes only the keys listed for it:\n\n| workload | what it is | keys | tests or protocols |\n|---|---|---|---|\n")
	for _, s := range known.Workloads {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, cell(s.Summary), codes(taken(s)), codes(append(s.Tests[:len(s.Tests):len(s.Tests)], s.Protocols...)))
	}
	section(&b, "sampling", reflect.TypeFor[Sampling](), known)
	return b.String()
}

func section(b *strings.Builder, title string, t reflect.Type, known Known) {
	fmt.Fprintf(b, "\n## %s\n\n| key | type | default | what it is | example |\n|---|---|---|---|---|\n", title)
	for _, k := range keysOf(t, known) {
		fallback := "—"
		switch {
		case k.required:
			fallback = "required"
		case k.def == "{}":
			fallback = "see below"
		case k.def != "":
			fallback = "`" + k.def + "`"
		case k.defDoc != "":
			fallback = cell(k.defDoc)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | `%s` |\n", k.name, typeWords(k.typeIn(t), k), fallback, cell(k.doc+allowed(k)), k.example)
	}
}

func typeWords(t reflect.Type, k key) string {
	switch {
	case t == reflect.TypeFor[Network]():
		return "name or mapping"
	case t.Kind() == reflect.Slice:
		return "list of: " + typeWords(t.Elem(), k)
	case t.Kind() == reflect.Struct:
		return "mapping"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Int:
		return "whole number, " + k.bounds.String()
	default:
		return "number, " + k.bounds.String()
	}
}

// allowed says which texts a key takes, where they are few.
func allowed(k key) string {
	switch {
	case k.kind == "workload":
		return ""
	case k.names != nil:
		return " One of " + codes(k.names) + "."
	case k.pattern != nil:
		return " It has " + k.patternDoc + "."
	}
	return ""
}

func taken(s workload.Spec) []string {
	var names []string
	for _, name := range workloadKeyNames() {
		if name != "name" && takes(s, name) {
			names = append(names, name)
		}
	}
	return names
}

func codes(names []string) string {
	if len(names) == 0 {
		return "—"
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

// cell makes a text safe inside a Markdown table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
