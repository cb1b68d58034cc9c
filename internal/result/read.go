package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/plain"
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

// Complete reports whether the run came to its end.
func (r Recorded) Complete() bool { return r.Environment != nil && !r.Environment.Finished.IsZero() }

// Read reads a result directory.
func Read(path string) (Recorded, error) {
	var samples []Sample
	torn, err := Each(path, func(s *Sample) { samples = append(samples, *s) })
	if err != nil {
		return Recorded{Path: path}, err
	}
	r, err := Describe(path)
	r.Samples, r.Torn = samples, torn
	return r, err
}

// Describe reads all of a result directory but its records.
func Describe(path string) (Recorded, error) {
	r := Recorded{Path: path}
	_, err := os.Stat(filepath.Join(path, SamplesFile))
	if err != nil {
		return r, noDirectory(path, err)
	}
	if r.Campaign, err = ReadFile(filepath.Join(path, CampaignFile)); err != nil {
		return r, err
	}
	if r.Plan, err = ReadFile(filepath.Join(path, PlanFile)); err != nil {
		return r, err
	}
	r.Environment, err = ReadEnvironment(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the run ended before its testbed stood
	}
	return r, err
}

// Each hands every record of a result directory to f, in their order, in place
// of keeping them. torn is that of Recorded.
func Each(path string, f func(*Sample)) (torn int64, err error) {
	name := filepath.Join(path, SamplesFile)
	file, err := open(name)
	if err != nil {
		return 0, noDirectory(path, err)
	}
	defer file.Close()
	end, err := eachSample(file, name, f)
	if err != nil {
		return 0, err
	}
	if info, err := file.Stat(); err == nil && info.Size() > end {
		torn = info.Size() - end
	}
	return torn, nil
}

// maxFile bounds what is read of a file as a whole, in bytes. The plan of 5,000 cells has
// 3 MiB.
const maxFile = 64 << 20

// ReadFile reads a file of a result directory, which may be anybody's: what is no file,
// as a FIFO or a device, is an error, and so is one of more than 64 MiB.
func ReadFile(path string) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s: larger than %d MiB: no file of cnibench is", path, maxFile>>20)
	}
	return data, err
}

// open opens a file for reading. It does not wait for the writer of a FIFO.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := isRegular(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// isRegular refuses what is no file: a folder, a FIFO, a device.
func isRegular(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file, but %v: remove it", f.Name(), info.Mode().Type())
	}
	return err
}

// noDirectory says what a folder without records is not.
func noDirectory(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no result directory (it has no %s): name the folder that cnibench run wrote", path, SamplesFile)
	}
	return err
}

// ReadEnvironment reads environment.json of a result directory.
func ReadEnvironment(path string) (*Environment, error) {
	name := filepath.Join(path, EnvironmentFile)
	data, err := ReadFile(name)
	if err != nil {
		return nil, err
	}
	env := &Environment{}
	if err := json.Unmarshal(data, env); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	plain.Clean(env)
	if env.Schema > Schema {
		return nil, newer(name, env.Schema)
	}
	return env, nil
}

func newer(name string, schema int) error {
	return fmt.Errorf("%s: schema %d is newer than this cnibench knows (%d): use the cnibench that wrote it, or a later one", name, schema, Schema)
}
