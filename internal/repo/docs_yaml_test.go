package repo

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// TestYAMLInDocuments: every block of YAML in a document is one that its reader takes. Parts
// of a campaign, a paper or its claims are checked by their schemas, with what the part
// leaves out added; steps of GitHub and GitLab by what examples/ci declares; an inventory
// has the groups that cnibench reads.
func TestYAMLInDocuments(t *testing.T) {
	schemas := map[string]*jsonschema.Schema{}
	for _, name := range []string{"campaign", "paper", "claims"} {
		schema, err := jsonschema.NewCompiler().Compile(filepath.Join(root, "docs", name+".schema.json"))
		if err != nil {
			t.Fatal(err)
		}
		schemas[name] = schema
	}
	n := 0
	for _, path := range files(t, ".md") {
		for _, block := range blocksOf(read(t, path), "yaml") {
			n++
			if err := readable(t, schemas, block.text); err != nil {
				t.Errorf("%s:%d: %v", path, block.line, err)
			}
		}
	}
	if n < 12 {
		t.Errorf("only %d blocks found: is the search for them broken?", n)
	}
}

// block is a block of code in a document, with its first line's number.
type block struct {
	text string
	line int
}

// blocksOf are the blocks of a language; "" are those without one.
func blocksOf(text, language string) []block {
	var all []block
	inside := ""
	for i, line := range strings.Split(text, "\n") {
		fence := strings.TrimSpace(line)
		switch {
		case inside == "" && strings.HasPrefix(fence, "```"):
			if inside = fence; inside == "```"+language {
				all = append(all, block{line: i + 2})
			}
		case inside != "" && fence == "```":
			inside = ""
		case inside == "```"+language:
			all[len(all)-1].text += line + "\n"
		}
	}
	return all
}

// readable checks one block.
func readable(t *testing.T, schemas map[string]*jsonschema.Schema, text string) error {
	t.Helper()
	var have map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &have); err != nil {
		return err
	}
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { _, is := have[k]; return is })
	}
	complete := func(name string, whole map[string]any) error {
		maps.Copy(whole, have)
		return schemas[name].Validate(whole)
	}
	switch {
	case len(have) == 0 && strings.HasPrefix(text, "#"):
		return nil // a comment for editors
	case has("jobs"):
		return steps(t, have["jobs"])
	case has("include"):
		return templates(t, have)
	case has("all"):
		return groups(have)
	case has("tables"):
		return complete("paper", document(t, "papers/lim2020/paper.yaml"))
	case has("claims"):
		return complete("claims", document(t, "papers/lim2020/claims.yaml"))
	}
	return complete("campaign", map[string]any{"name": "c", "workloads": []any{map[string]any{"name": "tcp_rr"}}, "networks": []any{"host"}})
}

func document(t *testing.T, path string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(read(t, path)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// steps checks that jobs use the action with inputs that it has.
func steps(t *testing.T, jobs any) error {
	t.Helper()
	inputs, _ := document(t, "examples/ci/github-action/action.yml")["inputs"].(map[string]any)
	used := 0
	for _, job := range asMap(jobs) {
		list, _ := asMap(job)["steps"].([]any)
		for _, step := range list {
			with := asMap(asMap(step)["with"])
			for name := range with {
				used++
				if _, is := inputs[name]; !is {
					return fmt.Errorf("examples/ci/github-action has no input %s", name)
				}
			}
			for name, value := range inputs {
				if _, given := with[name]; len(with) > 0 && asMap(value)["required"] == true && !given {
					return fmt.Errorf("the input %s is missing", name)
				}
			}
		}
	}
	if used == 0 {
		return fmt.Errorf("no step uses the action")
	}
	return nil
}

// templates checks that what is extended exists in the template, and reads the variables.
func templates(t *testing.T, have map[string]any) error {
	t.Helper()
	template := document(t, "examples/ci/gitlab.yml")
	used := 0
	for _, job := range have {
		name, _ := asMap(job)["extends"].(string)
		if name == "" {
			continue
		}
		used++
		text := fmt.Sprint(asMap(template[name])["script"])
		for variable := range asMap(asMap(job)["variables"]) {
			if !strings.Contains(text, "$"+variable) {
				return fmt.Errorf("%s of examples/ci/gitlab.yml does not read %s", name, variable)
			}
		}
	}
	if used == 0 {
		return fmt.Errorf("no job extends the template")
	}
	return nil
}

// groups checks the names of an inventory's groups.
func groups(have map[string]any) error {
	known := []string{"client", "control_plane", "server", "sink"}
	children := asMap(asMap(have["all"])["children"])
	for name := range children {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the group %s is not one of %v", name, known)
		}
	}
	if children["client"] == nil || children["server"] == nil {
		return fmt.Errorf("an inventory has a client and a server")
	}
	return nil
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// TestFilesOfDocumentsExist: every path of the tree that a block of commands names exists.
func TestFilesOfDocumentsExist(t *testing.T) {
	for _, path := range files(t, ".md") {
		for _, language := range []string{"sh", "bash", "console", ""} {
			for _, block := range blocksOf(read(t, path), language) {
				for word := range strings.FieldsSeq(block.text) {
					word = strings.TrimPrefix(word, "./")
					top, _, _ := strings.Cut(word, "/")
					if !slices.Contains([]string{"deploy", "examples", "experiments", "internal", "scripts", "tools"}, top) || strings.ContainsAny(word, "<│─") {
						continue
					}
					if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(word, "/..."))); err != nil {
						t.Errorf("%s:%d: %v", path, block.line, err)
					}
				}
			}
		}
	}
}
