package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cnibench/cnibench/internal/plain"
)

// decoder decodes lines of samples.jsonl, one after the other.
type decoder struct {
	known map[string]bool // names of metrics
	// names has each name of a value once: a record has dozens, always the same.
	names   map[string]string
	options jsonv2.Options
	prefix  []byte // of a line of this program's version
}

func newDecoder() *decoder {
	d := &decoder{known: knownMetrics(), names: map[string]string{}, prefix: fmt.Appendf(nil, `{"schema":%d,`, Schema)}
	d.options = jsonv2.JoinOptions(jsonv2.RejectUnknownMembers(true), jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(d.values)))
	return d
}

// sample parses one line.
func (d *decoder) sample(line []byte) (Sample, error) {
	// The version first: what follows may be unknown to this program. It is the
	// first key that this program writes.
	if !bytes.HasPrefix(line, d.prefix) {
		if err := checkVersion(line); err != nil {
			return Sample{}, err
		}
	}
	var s Sample
	if err := jsonv2.Unmarshal(line, &s, d.options); err != nil {
		if !json.Valid(line) {
			return Sample{}, fmt.Errorf("not a record: %w", err)
		}
		return Sample{}, fmt.Errorf("not a record of schema %d: %w", Schema, err)
	}
	if mayHoldControls(line) {
		plain.Clean(&s)
	}
	if err := s.validate(d.known); err != nil {
		return Sample{}, err
	}
	return s, nil
}

// mayHoldControls reports whether a line has something that plain.Text could replace: in
// JSON control characters are escapes (\u001b, \r, \b), and the others begin with one of
// these bytes.
func mayHoldControls(line []byte) bool {
	return bytes.IndexByte(line, '\\') >= 0 || bytes.IndexByte(line, 0x7f) >= 0 ||
		bytes.IndexByte(line, 0xc2) >= 0 || bytes.IndexByte(line, 0xd8) >= 0 || bytes.IndexByte(line, 0xe2) >= 0
}

func checkVersion(line []byte) error {
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(line, &version); err != nil {
		return fmt.Errorf("not a record: %w", err)
	}
	switch {
	case version.Schema > Schema:
		return fmt.Errorf("%w", newer("record", version.Schema))
	case version.Schema < 1:
		return fmt.Errorf("no record of cnibench: schema %d", version.Schema)
	}
	return nil
}

// values decodes an object of numbers, nearly all of a record.
func (d *decoder) values(in *jsontext.Decoder, out *map[string]float64) error {
	if in.PeekKind() != '{' {
		return errors.ErrUnsupported // null, or wrong: the library knows what to say
	}
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	values := make(map[string]float64, 12)
	for in.PeekKind() != '}' {
		name, err := in.ReadValue()
		if err != nil {
			return err
		}
		key, err := d.name(name)
		if err != nil {
			return err
		}
		if kind := in.PeekKind(); kind != '0' {
			return fmt.Errorf("%s is a %v, not a number", key, kind)
		}
		number, err := in.ReadToken()
		if err != nil {
			return err
		}
		if values[key], err = number.Float(); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	*out = values
	_, err := in.ReadToken()
	return err
}

// name is the text of a JSON string, the same one for the same text.
func (d *decoder) name(quoted []byte) (string, error) {
	if s, ok := d.names[string(quoted)]; ok {
		return s, nil
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return "", err
	}
	d.names[string(quoted)] = string(text)
	return string(text), nil
}
