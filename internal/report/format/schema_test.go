package format

import (
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
)

func TestJSONKeepsItsSchema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	file, err := os.Open("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	doc, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("report.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	cases := reporttest.Inputs()
	cases["hostile"], cases["analysed"], cases["crossed"], cases["stacked"] = reporttest.Hostile(), reporttest.Analysed(), reporttest.Crossed(), reporttest.Stacked()
	for name, in := range cases {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(render(t, "json", in, screen.Options{})))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
