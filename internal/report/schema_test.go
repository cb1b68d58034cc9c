package report

import (
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
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
	cases := inputs()
	cases["hostile"], cases["analysed"], cases["crossed"], cases["stacked"] = hostile(), analysed(), crossed(), stacked()
	for name, in := range cases {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(render(t, "json", in, Options{})))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
