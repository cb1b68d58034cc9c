package baremetal

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// unsafeVars writes variables as YAML for ansible-playbook -e @FILE. Each text is marked
// !unsafe: Ansible uses it as it is and never evaluates it as a template, whatever host it
// came from.
func unsafeVars(vars map[string]any) ([]byte, error) {
	var b bytes.Buffer
	if err := writeUnsafe(&b, vars); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

func writeUnsafe(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case string:
		// The escapes of Go's literals are those of YAML's double quotes.
		fmt.Fprintf(b, "!unsafe %s", strconv.QuoteToASCII(v))
	case int:
		fmt.Fprint(b, v)
	case []string:
		b.WriteByte('[')
		for _, s := range v {
			if err := writeUnsafe(b, s); err != nil {
				return err
			}
			b.WriteString(", ")
		}
		b.WriteByte(']')
	case map[string]string:
		return writeMap(b, v)
	case map[string]any:
		return writeMap(b, v)
	default:
		return fmt.Errorf("a variable for Ansible of type %T", v)
	}
	return nil
}

func writeMap[V any](b *bytes.Buffer, m map[string]V) error {
	b.WriteByte('{')
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(strconv.QuoteToASCII(k) + ": ")
		if err := writeUnsafe(b, m[k]); err != nil {
			return err
		}
		b.WriteString(", ")
	}
	b.WriteByte('}')
	return nil
}
