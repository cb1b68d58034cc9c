package paper

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cnibench/cnibench/papers"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

var update = flag.Bool("update", false, "write generated files anew")

const goodPaper = `id: mine
title: T
authors: [A]
year: 2025
published_in: P
question: Q
setup: [{what: nodes, published: two}]
tables:
  - {id: one, kind: figure, where: Figure 1, title: One, no_data: a drawing}
  - id: two
    kind: table
    where: Table 2
    title: Two
    ours: {metric: throughput_bits_per_second, unit: Gbit/s, base_per_unit: 1e9}
    columns: [{name: c}]
    rows: [{name: r, cell: {network: host}, values: [1]}]
`

const goodCampaign = "name: mine\nnetworks: [host, bridge]\nworkloads: [{name: tcp_stream, message_bytes: [1472]}]\n"

const goodClaims = `claims:
  - id: first
    kind: finding
    where: here
    quote: more than ever
    published: it is more
    metric: throughput_bits_per_second
    left: {network: bridge}
    relation: greater
    right: {network: host}
`

func folder(paper, claims string) fstest.MapFS {
	f := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	return fstest.MapFS{"mine/paper.yaml": f(paper), "mine/claims.yaml": f(claims), "mine/campaign.yaml": f(goodCampaign)}
}

func TestLoad(t *testing.T) {
	p, err := Load(folder(goodPaper, goodClaims), "mine", program(t))
	if err != nil {
		t.Fatal(err)
	}
	if *p.Tables[1].Rows[0].Values[0] != 1 || p.Claims[0].Left["network"] != "bridge" || len(p.Used) != 2 {
		t.Errorf("%+v", p)
	}
	if _, err := Load(folder(goodPaper, goodClaims), "mime", program(t)); err == nil || !strings.Contains(err.Error(), `did you mean "mine"?`) {
		t.Errorf("%v", err)
	}
	without := folder(goodPaper, goodClaims)
	delete(without, "mine/campaign.yaml")
	if _, err := Load(without, "mine", program(t)); err == nil || !strings.Contains(err.Error(), "campaign.yaml") {
		t.Errorf("%v", err)
	}
}

// TestErrorsHaveAPlace: what is wrong is reported with file, line and column, all of
// it at once.
func TestErrorsHaveAPlace(t *testing.T) {
	for name, x := range map[string]struct{ in, old, new, want string }{
		"unknown key":       {"paper", "year: 2025", "yeer: 2025", `mine/paper.yaml:4:7: yeer: unknown key "yeer"; did you mean "year"?`},
		"missing key":       {"paper", "year: 2025\n", "", `missing key "year"`},
		"wrong type":        {"paper", "year: 2025", "year: soon", "mine/paper.yaml:4:7: year: expected integer, found string"},
		"another id":        {"paper", "id: mine", "id: yours", `mine/paper.yaml:1:5: id: expected "mine", found "yours"`},
		"two ways":          {"paper", "no_data: a drawing", "no_data: a drawing, not_yet: no", "expected exactly one of ours, not_yet and no_data"},
		"unknown choice":    {"paper", "kind: table", "kind: tabel", `mine/paper.yaml:11:11: tables[1].kind: unknown value "tabel"; did you mean "table"?`},
		"too few values":    {"paper", "values: [1]", "values: [1, 2]", "expected 1 values, one a column, found 2"},
		"same id":           {"paper", "id: two", "id: one", `"one" is the id of a table before`},
		"factor misspelt":   {"paper", "network: host", "netwerk: host", `did you mean "network"?`},
		"unit of nothing":   {"paper", "base_per_unit: 1e9", "base_per_unit: 0", "mine/paper.yaml:14:77: tables[1].ours.base_per_unit: expected a number above 0"},
		"YAML":              {"paper", "id: mine", "id: [", "not valid YAML"},
		"duplicate key":     {"paper", "year: 2025", "year: 2025\nyear: 2026", `duplicate key "year"`},
		"unknown relation":  {"claims", "relation: greater", "relation: greeter", `mine/claims.yaml:9:15: claims[0].relation: unknown value "greeter"; did you mean "greater"?`},
		"what it takes":     {"claims", "relation: greater", "relation: ratio_within", `missing key "range"`},
		"what it does not":  {"claims", "relation: greater", "relation: fills_link", "relation fills_link takes no right"},
		"range turned":      {"claims", "relation: greater", "relation: ratio_within\n    range: [2, 1]", "1 is below 2; write the lower first"},
		"neither":           {"claims", "    metric: throughput_bits_per_second\n", "", "expected metric, left and relation, or not_yet"},
		"nested selector":   {"claims", "{network: bridge}", "{network: {a: b}}", "expected array or boolean or number or string, found object"},
		"unknown claim key": {"claims", "where: here", "where: here\n    wheer: there", `unknown key "wheer"; did you mean "where"?`},
	} {
		t.Run(name, func(t *testing.T) {
			paper, claims := goodPaper, goodClaims
			if x.in == "paper" {
				paper = strings.Replace(paper, x.old, x.new, 1)
			} else {
				claims = strings.Replace(claims, x.old, x.new, 1)
			}
			_, err := Load(folder(paper, claims), "mine", program(t))
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v\nwant: %s", err, x.want)
			}
		})
	}
	_, err := Load(folder(strings.Replace(goodPaper, "year: 2025", "yeer: x", 1), strings.Replace(goodClaims, "greater", "more", 1)), "mine", program(t))
	for _, want := range []string{"yeer", `missing key "year"`, `"more"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
}

// TestSchemas: the schemas in docs are those that the loader uses.
func TestSchemas(t *testing.T) {
	for file, f := range map[string]func() ([]byte, error){"paper.schema.json": PublicationSchema, "claims.schema.json": ClaimsSchema} {
		want, err := f()
		if err != nil {
			t.Fatal(err)
		}
		generated(t, filepath.Join("..", "..", "docs", file), want)
	}
}

// TestManual: the tables of keys in the manual are made from the types.
func TestManual(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "adding-a-paper.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- From here on made from internal/paper: go test ./internal/paper -update -->\n"
	before, _, ok := bytes.Cut(text, []byte(mark))
	if !ok {
		t.Fatalf("%s has no line %q", file, mark)
	}
	generated(t, file, append(append(before, mark...), Manual()...))
}

func generated(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the types give (%v): go test ./internal/paper -update", file, err)
	}
}

// TestSchemaAndTypesAgree: what the schema lets pass is what the types hold, key
// by key, and back.
func TestSchemaAndTypesAgree(t *testing.T) {
	names, err := List(papers.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range names {
		p := load(t, id)
		for typ, value := range map[reflect.Type]any{reflect.TypeFor[Publication](): p.Publication, reflect.TypeFor[Claims](): Claims{p.Claims, p.WithoutClaim}} {
			schema, err := compile(typ)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			var back any
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(back); err != nil {
				t.Errorf("%s: what was read is not what the schema takes: %v", id, err)
			}
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(goodPaper, goodClaims)
	f.Add("tables: [{columns: 1}]", "claims: [1]")
	known := program(f)
	f.Fuzz(func(t *testing.T, paper, claims string) {
		defer fuzzed.Within(t)()
		p, err := Load(folder(paper, claims), "mine", known)
		if err == nil {
			Reproduce(p, (&made{}).results())
		}
	})
}
