package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/flock"
)

// The files of a result directory.
const (
	CampaignFile    = "campaign.yaml"
	PlanFile        = "plan.json"
	EnvironmentFile = "environment.json"
	SamplesFile     = "samples.jsonl"
	RawDir          = "raw"
	ReportFile      = "report.html"
)

var errVanished = errors.New("the result directory vanished during the run")

// Dir is a result directory that this process writes. Its samples file is
// locked, so that a second run into it is refused.
type Dir struct {
	Path    string
	disk    disk
	samples *file
	end     int64 // of the last whole line
}

var (
	// ErrBusy is the error of a second run into a directory.
	ErrBusy = errors.New("another run is writing this result directory")
	// ErrNothing is the error of going on where nothing was recorded: no
	// directory, or one that was left while it was made. Create then may begin.
	ErrNothing = errors.New("nothing is recorded")
	// ErrTooLong is the error of a record that no reader would take, which Append
	// refuses.
	ErrTooLong = errors.New("the record is too long")
)

// Create makes a new result directory with the campaign as run and its plan.
// A folder that holds anything already is refused, and left as it was.
func Create(path string, campaign []byte, plan any) (*Dir, error) {
	return create(path, campaign, plan, disk{})
}

func create(path string, campaign []byte, plan any, on disk) (*Dir, error) {
	entries, err := os.ReadDir(path)
	switch {
	case err == nil && len(entries) > 0:
		return nil, fmt.Errorf("%s: not empty: name another folder with --out, or continue it with --resume --out %s", path, path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := on.mkdirAll(path); err != nil {
		return nil, err
	}
	d := &Dir{Path: path, disk: on}
	if err := d.open(os.O_CREATE | os.O_EXCL); err != nil {
		return nil, err
	}
	// By the samples file, which is the first, the next Resume recognizes what a crash
	// from here on leaves.
	if err := errors.Join(on.syncDir(path), d.write(CampaignFile, campaign), d.WriteJSON(PlanFile, plan)); err != nil {
		return nil, errors.Join(err, d.Discard())
	}
	return d, nil
}

// Discard removes a result directory that nothing was recorded in, so that a run
// that never began leaves none, with the raw output of attempts that no record
// came of. One with records is only closed.
func (d *Dir) Discard() error {
	if d.end > 0 {
		return d.Close()
	}
	errs := []error{d.clearTorn()}
	// The plan goes after raw/, and the samples file, which is locked, comes last: a
	// Discard that is cut short leaves what the next Resume recognizes.
	errs = append(errs, d.disk.removeAll(filepath.Join(d.Path, RawDir)))
	for _, names := range [][]string{nil, {PlanFile}, {EnvironmentFile, CampaignFile}, {SamplesFile}} {
		for _, name := range names {
			errs = append(errs, d.disk.remove(filepath.Join(d.Path, name)))
		}
		if err := d.disk.syncDir(d.Path); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	// A folder that is not empty now holds somebody else's files: it stays.
	if isEmpty(d.Path) {
		if err := d.disk.remove(d.Path); !errors.Is(err, unix.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, d.Close())...)
}

// Cut is what Resume cut off the samples file: the torn line that a killed run
// left at its end.
type Cut struct {
	// Bytes is the length of the torn line; 0: nothing was cut off.
	Bytes int64
	// Kept is the file that has these bytes now, next to the samples file.
	Kept string
}

// Resume opens a result directory to append to it. It changes nothing in a
// folder that is no result directory. ErrNothing: there is nothing to resume.
func Resume(path string) (d *Dir, records []Sample, cut Cut, err error) {
	return resume(path, disk{})
}

func resume(path string, on disk) (d *Dir, records []Sample, cut Cut, err error) {
	d = &Dir{Path: path, disk: on}
	if err := d.open(0); errors.Is(err, fs.ErrNotExist) && isEmpty(path) {
		return nil, nil, Cut{}, fmt.Errorf("%s: %w", path, ErrNothing)
	} else if err != nil {
		return nil, nil, Cut{}, noDirectory(path, err)
	}
	if d.unmade() {
		return nil, nil, Cut{}, errors.Join(fmt.Errorf("%s: %w", path, ErrNothing), d.Discard())
	}
	if err := d.isResult(); err != nil {
		return nil, nil, Cut{}, errors.Join(err, d.Close())
	}
	if err := d.clearTorn(); err != nil {
		return nil, nil, Cut{}, errors.Join(err, d.Close())
	}
	end, err := eachSample(d.samples, filepath.Join(path, SamplesFile), func(s *Sample) { records = append(records, *s) })
	if err == nil {
		cut, err = d.cutAfter(end)
	}
	if err != nil {
		return nil, nil, Cut{}, errors.Join(err, d.Close())
	}
	d.end = end
	return d, records, cut, nil
}

// isResult refuses a folder that has a file of the samples' name, and lacks the
// others that every run writes before its first sample.
func (d *Dir) isResult() error {
	_, err := os.Stat(filepath.Join(d.Path, CampaignFile))
	var data []byte
	if err == nil {
		data, err = ReadFile(filepath.Join(d.Path, PlanFile))
	}
	var plan struct{ Schema int }
	if err == nil {
		if err = json.Unmarshal(data, &plan); err == nil && plan.Schema < 1 {
			err = errors.New("no schema")
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", PlanFile, err)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: no result directory, and left as it is (%w): name the folder that cnibench run wrote", d.Path, err)
	}
	return nil
}

// cutAfter cuts off what follows the last whole line, once it is safe in a file
// of its own.
func (d *Dir) cutAfter(end int64) (Cut, error) {
	info, err := d.samples.Stat()
	if err != nil {
		return Cut{}, err
	}
	c := Cut{Bytes: info.Size() - end}
	if c.Bytes > 0 {
		kept, err := d.disk.temporary(d.Path, SamplesFile+".cut-"+time.Now().UTC().Format("20060102T150405Z")+"-*")
		if err != nil {
			return Cut{}, fmt.Errorf("keep the torn line: %w", err)
		}
		c.Kept = kept.Name()
		torn := make([]byte, c.Bytes) // at most maxLine, or eachSample has refused it
		if _, err = d.samples.ReadAt(torn, end); err == nil {
			_, err = kept.Write(torn)
		}
		if err := errors.Join(err, kept.Sync(), kept.Close(), d.disk.syncDir(d.Path)); err != nil {
			return Cut{}, fmt.Errorf("keep the torn line: %w", err)
		}
		if err := errors.Join(d.samples.Truncate(end), d.samples.Sync()); err != nil {
			return Cut{}, err
		}
	}
	_, err = d.samples.Seek(end, io.SeekStart)
	return c, err
}

// isEmpty reports whether a folder is missing or empty.
func isEmpty(path string) bool {
	entries, err := os.ReadDir(path)
	return len(entries) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist))
}

// unmade recognises a directory whose maker was killed before Create had finished:
// it has no plan, which comes last, no record, and nothing that is not Create's.
func (d *Dir) unmade() bool {
	info, err := d.samples.Stat()
	if err != nil || info.Size() > 0 {
		return false
	}
	entries, err := os.ReadDir(d.Path)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		name := e.Name()
		return name != SamplesFile && name != CampaignFile && name != EnvironmentFile && !strings.HasPrefix(name, strings.TrimSuffix(tornPattern, "*"))
	})
}

// tornPattern is what the names of half-written files begin with.
const tornPattern = ".tmp-*"

// clearTorn removes the files that a killed run left half-written, and none that a link
// leads to.
func (d *Dir) clearTorn() error {
	root, err := os.OpenRoot(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	var errs []error
	for _, pattern := range []string{tornPattern, RawDir + "/*/" + tornPattern} {
		torn, err := fs.Glob(root.FS(), pattern)
		errs = append(errs, err)
		for _, name := range torn {
			errs = append(errs, d.disk.remove(filepath.Join(d.Path, name)))
		}
	}
	return errors.Join(errs...)
}

func (d *Dir) open(flag int) error {
	f, err := d.disk.open(filepath.Join(d.Path, SamplesFile), flag)
	if err != nil {
		return err
	}
	if err := flock.Take(f.File, 0); err != nil {
		if errors.Is(err, flock.ErrHeld) {
			err = fmt.Errorf("%s: %w: wait for it, or name another folder with --out", d.Path, ErrBusy)
		}
		return errors.Join(err, f.Close())
	}
	d.samples = f
	return nil
}

// Close releases the directory.
func (d *Dir) Close() error { return d.samples.Close() }

// Append adds one record and returns when it is on the disk. After an error
// the file ends with the last whole record.
func (d *Dir) Append(s Sample) error {
	if err := s.Validate(); err != nil {
		return fmt.Errorf("record %s: %w", s.ID, err)
	}
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(line) >= maxLine {
		return fmt.Errorf("record %s: %w: %d bytes, at most %d are read", s.ID, ErrTooLong, len(line), maxLine)
	}
	if err := d.StillThere(); err != nil {
		return err
	}
	n, err := d.samples.Write(append(line, '\n'))
	if err == nil {
		err = d.samples.Sync()
	}
	if err != nil {
		// A half-written line would be read as torn; take it back at once.
		_, seek := d.samples.Seek(d.end, 0)
		return errors.Join(fmt.Errorf("write %s: %w", filepath.Join(d.Path, SamplesFile), err), d.samples.Truncate(d.end), seek)
	}
	d.end += int64(n)
	return nil
}

// StillThere reports whether the name still leads to the file that is written: a
// deleted folder would swallow samples without an error.
func (d *Dir) StillThere() error {
	name := filepath.Join(d.Path, SamplesFile)
	byName, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("%w: %w", errVanished, err)
	}
	open, err := d.samples.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(byName, open) {
		return fmt.Errorf("%s was replaced during the run", name)
	}
	return nil
}

// WriteJSON writes one of the directory's JSON files, whole or not at all.
func (d *Dir) WriteJSON(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return d.write(name, append(data, '\n'))
}

// write replaces a file of the directory, whole or not at all.
func (d *Dir) write(name string, data []byte) error {
	return d.disk.writeFile(filepath.Join(d.Path, name), data)
}

// SaveRaw keeps what a tool was and printed below raw/<sample>/; name is
// "client" or "server".
func (d *Dir) SaveRaw(sample, name string, argv []string, stdout, stderr string) error {
	dir, err := d.rawDir(sample)
	if err != nil {
		return err
	}
	line, err := json.Marshal(argv)
	if err != nil {
		return err
	}
	return errors.Join(
		d.disk.replace(filepath.Join(dir, name+".argv.json"), append(line, '\n')),
		d.disk.replace(filepath.Join(dir, name+".stdout"), []byte(stdout)),
		d.disk.replace(filepath.Join(dir, name+".stderr"), []byte(stderr)),
		d.disk.syncDir(dir),
	)
}
