package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Recorded is a result directory as read. Reading changes nothing.
type Recorded struct {
	Path        string
	Campaign    []byte // campaign.yaml as run
	Plan        []byte // plan.json
	Environment *Environment
	Samples     []Sample
	// Torn is the number of bytes of a torn last line that were passed over: a
	// run was killed, or goes on, while it was written.
	Torn int64
}

// Complete tells whether the run came to its end.
func (r Recorded) Complete() bool { return r.Environment != nil && !r.Environment.Finished.IsZero() }

// Read reads a result directory.
func Read(path string) (Recorded, error) {
	r := Recorded{Path: path}
	f, err := os.Open(filepath.Join(path, SamplesFile))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return r, fmt.Errorf("%s: no result directory (it has no %s): name the folder that cnibench run wrote", path, SamplesFile)
		}
		return r, err
	}
	defer f.Close()
	var end int64
	if r.Samples, end, err = readSamples(f, filepath.Join(path, SamplesFile)); err != nil {
		return r, err
	}
	if info, err := f.Stat(); err == nil && info.Size() > end {
		r.Torn = info.Size() - end
	}
	if r.Campaign, err = os.ReadFile(filepath.Join(path, CampaignFile)); err != nil {
		return r, err
	}
	if r.Plan, err = os.ReadFile(filepath.Join(path, PlanFile)); err != nil {
		return r, err
	}
	r.Environment, err = ReadEnvironment(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the run ended before its testbed stood
	}
	return r, err
}

// ReadEnvironment reads environment.json of a result directory.
func ReadEnvironment(path string) (*Environment, error) {
	name := filepath.Join(path, EnvironmentFile)
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	env := &Environment{}
	if err := json.Unmarshal(data, env); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if env.Schema > Schema {
		return nil, newer(name, env.Schema)
	}
	return env, nil
}

func newer(name string, schema int) error {
	return fmt.Errorf("%s: schema %d is newer than this cnibench knows (%d): use the cnibench that wrote it, or a later one", name, schema, Schema)
}

// readSamples reads all whole records; end is where the last one ends. Only
// the last line may be torn: a killed writer leaves no other.
func readSamples(r io.Reader, name string) (samples []Sample, end int64, err error) {
	br := bufio.NewReaderSize(r, 1<<20)
	for n := 1; ; n++ {
		line, err := br.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return samples, end, nil // what is left in line is torn, or nothing
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", name, err)
		}
		s, err := parseSample(line)
		if err != nil {
			if _, more := br.ReadByte(); more == io.EOF && !json.Valid(line) {
				return samples, end, nil // torn, in a block that a crash left half on the disk
			}
			return nil, 0, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		samples = append(samples, s)
		end += int64(len(line))
	}
}

// parseSample parses one line of samples.jsonl.
func parseSample(line []byte) (Sample, error) {
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(line, &version); err != nil {
		return Sample{}, fmt.Errorf("not a record: %w", err)
	}
	switch {
	case version.Schema > Schema:
		return Sample{}, fmt.Errorf("%w", newer("record", version.Schema))
	case version.Schema < 1:
		return Sample{}, fmt.Errorf("no record of cnibench: schema %d", version.Schema)
	}
	var s Sample
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Sample{}, fmt.Errorf("not a record of schema %d: %w", version.Schema, err)
	}
	if err := s.Validate(); err != nil {
		return Sample{}, err
	}
	return s, nil
}
