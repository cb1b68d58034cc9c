package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// TestResolve: which format and file flags ask for, and which contradict each other.
func TestResolve(t *testing.T) {
	for args, want := range map[string]struct{ format, file, err string }{
		"":                      {"terminal", "", ""},
		"-o json":               {"json", "", ""},
		"--json":                {"json", "", ""},
		"--json -o json":        {"json", "", ""},
		"--output yaml --to f":  {"yaml", "f", ""},
		"-o ./f":                {"terminal", "./f", ""},
		"-o f.txt --json":       {"json", "f.txt", ""},
		"--format csv -o f.csv": {"csv", "f.csv", ""},
		"--format csv":          {"csv", "", ""},
		"--format csv -o csv":   {"csv", "", ""},
		"-o f.txt --to g":       {err: "-o f.txt and --to g both name a file"},
		"--json -o yaml":        {err: "-o yaml and --json contradict each other: use one of them"},
		"--format csv -o json":  {err: "-o json and --format csv contradict each other"},
		"-o pdf":                {err: `--output "pdf": want one of terminal, json, yaml, csv`},
		"--format pdf":          {err: `--format "pdf": want one of terminal, json, yaml, csv`},
	} {
		var o outputFlags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.add(flags, append(plainFormats(), "csv"))
		o.addFile(flags, "", "")
		o.addFormat(flags)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		format, file, err := o.resolve(flags)
		switch {
		case want.err != "":
			if err == nil || !strings.Contains(err.Error(), want.err) {
				t.Errorf("%q: %v, want %q", args, err, want.err)
			}
		case err != nil || format != want.format || file != want.file:
			t.Errorf("%q: %q %q %v", args, format, file, err)
		}
	}
	// A command that writes no file takes the name of one for a wrong format.
	var o outputFlags
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.add(flags, plainFormats())
	if err := flags.Parse([]string{"-o", "f.txt"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.resolve(flags); err == nil || !strings.Contains(err.Error(), `"f.txt": want one of`) {
		t.Error(err)
	}
}

// TestColor: --color comes before the environment, and that before the terminal.
func TestColor(t *testing.T) {
	for _, c := range []struct {
		mode  string
		isTTY bool
		env   map[string]string
		want  bool
	}{
		{colorAuto, true, nil, true},
		{"", true, nil, true},
		{colorAuto, false, nil, false},
		{colorAuto, true, map[string]string{"NO_COLOR": "1"}, false},
		{colorAuto, true, map[string]string{"TERM": "dumb"}, false},
		{colorAlways, false, map[string]string{"NO_COLOR": "1", "TERM": "dumb"}, true},
		{colorNever, true, nil, false},
	} {
		if got := isColored(c.mode, c.isTTY, func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if !terminalOf(&resultWriter{w: io.Discard, color: colorAlways}).color {
		t.Error("--color always has no effect on what is no terminal")
	}
}

// silent are the commands that people use and that print no result.
func silent() []string {
	return []string{"lab exec", "lab down", "lab freeze", "lab thaw", "hosts bootstrap", "hosts deploy", "hosts collect", "hosts destroy", "hosts reset"}
}

// TestEveryResultHasFormats: each command that prints a result has -o, with JSON where
// that is its own, and its help lists the formats. A new command must be in silent or
// have the flag.
func TestEveryResultHasFormats(t *testing.T) {
	n := 0
	each(Root(io.Discard, io.Discard), func(cmd *cobra.Command) {
		name := strings.TrimPrefix(cmd.CommandPath(), "cnibench ")
		if !cmd.IsAvailableCommand() || cmd.HasSubCommands() || cmd.IsAdditionalHelpTopicCommand() {
			return
		}
		f := cmd.Flags().Lookup("output")
		if has := f != nil; has == slices.Contains(silent(), name) {
			t.Errorf("%s: -o: %v; is it in the list of commands without a result: %v", name, has, !has)
			return
		}
		if f == nil {
			return
		}
		n++
		formats := f.Annotations[FormatsAnnotation]
		if f.DefValue != formats[0] || !strings.HasSuffix(f.Usage, strings.Join(formats, ", ")) {
			t.Errorf("%s: the default %q or the help %q do not fit the formats %q", name, f.DefValue, f.Usage, formats)
		}
		if hasFlag := cmd.Flags().Lookup("json") != nil; hasFlag != slices.Contains(formats, formatJSON) {
			t.Errorf("%s: --json: %v, formats %q", name, hasFlag, formats)
		}
		if slices.ContainsFunc(formats, isFileName) {
			t.Errorf("%s: a format looks like a file: %q", name, formats)
		}
	})
	if n < 12 {
		t.Errorf("only %d commands have formats", n)
	}
}

// TestYAMLIsTheJSON: what a command prints as YAML has the values of its JSON.
func TestYAMLIsTheJSON(t *testing.T) {
	const recorded = "../result/testdata/v1"
	for _, argv := range [][]string{
		{"version"},
		{"list", "links"},
		{"list", "profiles"},
		{"report", recorded},
		{"compare", recorded, recorded},
		{"explain", recorded},
		{"recommend", recorded, "--for", "latency"},
		{"run", "--dry-run", "--seed", "1"},
		{"rbac", "--user", "alice", "--namespace", "team-a"},
	} {
		var values [2]any
		for i, format := range []string{formatJSON, formatYAML} {
			var stdout, stderr bytes.Buffer
			if status := Main(append(slices.Clone(argv), "-o", format), &stdout, &stderr); status != exitOK {
				t.Fatalf("%v -o %s: status %d: %s", argv, format, status, stderr.String())
			}
			var err error
			if format == formatJSON {
				err = json.Unmarshal(stdout.Bytes(), &values[i])
			} else if json.Valid(stdout.Bytes()) {
				t.Errorf("%v -o yaml prints JSON", argv)
			} else if argv[0] == "rbac" {
				var list bytes.Buffer
				if err = writeList(&list, stdout.String()); err == nil {
					err = json.Unmarshal(list.Bytes(), &values[i])
				}
			} else {
				err = yaml.Unmarshal(stdout.Bytes(), &values[i])
			}
			if err != nil {
				t.Fatalf("%v -o %s: %v", argv, format, err)
			}
		}
		if diff := cmp.Diff(values[0], values[1]); diff != "" {
			t.Errorf("%v: JSON and YAML differ:\n%s", argv, diff)
		}
	}
}
