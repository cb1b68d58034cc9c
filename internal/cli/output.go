package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/result"
)

// Formats that more than one command has.
const (
	formatTerminal = "terminal"
	formatWide     = "wide"
	formatJSON     = "json"
	formatYAML     = "yaml"
)

// stdoutFile is the name of standard output for --to.
const stdoutFile = "-"

// FormatsAnnotation is the annotation of a flag -o that lists its formats, the default
// first.
const FormatsAnnotation = "cnibench formats"

// outputFlags are those of a command that prints a result: its format (-o, and --json
// as the short form), and where a command can write a file, --to.
type outputFlags struct {
	formats []string // the first is the default
	format  string
	json    bool
	to      string
	writes  bool // the command has --to
}

// plainFormats are those of commands whose result is a list or a few values.
func plainFormats() []string { return []string{formatTerminal, formatJSON, formatYAML} }

// add defines -o, and --json where the command has that format.
func (o *outputFlags) add(flags *pflag.FlagSet, formats []string) {
	o.formats = formats
	flags.StringVarP(&o.format, "output", "o", formats[0], "the format: "+strings.Join(formats, ", "))
	flags.Lookup("output").Annotations = map[string][]string{FormatsAnnotation: formats}
	if slices.Contains(formats, formatJSON) {
		flags.BoolVar(&o.json, "json", false, "short for -o json")
	}
}

// addFile defines --to. -o FILE is what it was called before.
func (o *outputFlags) addFile(flags *pflag.FlagSet, file, usage string) {
	o.writes = true
	flags.StringVar(&o.to, "to", file, usage)
}

// addFormat defines --format, which is what -o was called before.
func (o *outputFlags) addFormat(flags *pflag.FlagSet) {
	flags.String("format", "", "the same as -o")
	flags.Lookup("format").Hidden = true
}

// asked is a format with the flag that asked for it.
type asked struct{ flag, words, format string }

// resolve gives the format and the file that the flags ask for; without a file it is
// "". Flags that contradict each other are an error.
func (o *outputFlags) resolve(flags *pflag.FlagSet) (format, file string, err error) {
	file = o.to
	var all []asked
	switch {
	case o.writes && isFileName(o.format) && flags.Changed("to"):
		return "", "", usageError{fmt.Errorf("-o %s and --to %s both name a file: use --to, and -o for the format", o.format, o.to)}
	case o.writes && isFileName(o.format):
		file = o.format
	case flags.Changed("output"):
		all = append(all, asked{"output", "-o " + o.format, o.format})
	}
	if f := flags.Lookup("format"); f != nil && f.Changed {
		all = append(all, asked{"format", "--format " + f.Value.String(), f.Value.String()})
	}
	if o.json {
		all = append(all, asked{"json", "--json", formatJSON})
	}
	if len(all) == 0 {
		return o.formats[0], file, nil
	}
	for _, a := range all[1:] {
		if a.format != all[0].format {
			return "", "", usageError{fmt.Errorf("%s and %s contradict each other: use one of them", all[0].words, a.words)}
		}
	}
	return all[0].format, file, oneOf(all[0].flag, all[0].format, o.formats)
}

// isFileName reports whether the value of -o names a file: no format has a dot or a
// slash in its name.
func isFileName(value string) bool { return value == stdoutFile || strings.ContainsAny(value, "./") }

// inFormat writes a result by write, which knows every format but YAML: that is made
// of the JSON, with the same keys.
func inFormat(w io.Writer, format string, write func(w io.Writer, format string) error) error {
	if format != formatYAML {
		return write(w, format)
	}
	var b bytes.Buffer
	if err := write(&b, formatJSON); err != nil {
		return err
	}
	text, err := yaml.JSONToYAML(b.Bytes())
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// printValue prints a value as JSON or YAML, or else by text.
func printValue(w io.Writer, format string, value any, text func(io.Writer) error) error {
	return inFormat(w, format, func(w io.Writer, format string) error {
		if format == formatJSON {
			return writeJSON(w, value)
		}
		return text(w)
	})
}

func writeJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// printTo writes what write writes to a file, atomically, or to w where file is "" or
// stdoutFile.
func printTo(w io.Writer, file string, write func(io.Writer) error) error {
	if file == "" || file == stdoutFile {
		return write(w)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return result.WriteFile(file, b.Bytes())
}
