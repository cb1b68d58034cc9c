package result_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/cli"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
)

// small is a campaign of four samples, as a run writes it into a directory: raw output and
// stacks of some samples, their records, the environment before and after, the report.
type small struct {
	plan plan.Plan
	ids  []string
	// before is called before each step of the disk.
	before func(fault.Step) error
	// acked counts the records that Append has promised to be on the disk.
	acked int
}

const (
	smallCampaign = "name: small\nnetworks: [host, bridge]\nworkloads: [{name: tcp_rr}]\nsampling: {seconds: 0.05, warmup_seconds: 0.01, min_blocks: 2, max_blocks: 2}\n"
	smallReport   = "<html>the report</html>\n"
	smallOutput   = "what a tool printed\n"
)

func newSmall(before func(fault.Step) error) *small {
	cell := result.Cell{Network: "host", Path: "host-to-host", Placement: "inter-host", Link: "unshaped", Profile: "default_settings", MTU: 1500,
		Workload: "tcp_rr", MessageBytes: 64, Streams: 1}
	other := cell
	other.Network, other.Path = "bridge", "pod-to-pod"
	s := &small{before: before, plan: plan.Plan{Schema: plan.Schema, Seed: 7, Cells: []result.Cell{cell, other},
		MinBlocks: 2, MaxBlocks: 2, SampleSeconds: 0.05, WarmupSeconds: 0.01}}
	for b := 1; b <= s.plan.MaxBlocks; b++ {
		for _, slot := range s.plan.Block(b, nil) {
			s.ids = append(s.ids, slot.ID)
		}
	}
	return s
}

// raw reports whether a sample has output of a tool: the first and the last.
func (s *small) raw(id string) bool { return id == s.ids[0] || id == s.ids[len(s.ids)-1] }

// record is what is measured of a slot.
func (s *small) record(slot plan.Slot) result.Sample {
	seconds := 0.05
	r := result.Sample{Schema: result.Schema, ID: slot.ID, Block: slot.Block, Attempt: 1, Cell: slot.Cell, Status: result.StatusOK,
		Started: time.Unix(1, 0).UTC(), MeasuredSeconds: &seconds, Metrics: map[string]float64{"transactions_per_second": float64(1000 + slot.Block)}}
	if s.raw(slot.ID) {
		r.Raw = result.RawDir + "/" + slot.ID
	}
	return r
}

func (s *small) environment(finished time.Time) result.Environment {
	return result.Environment{Schema: result.Schema, Testbed: "lab", Finished: finished}
}

// run writes the directory from its beginning, or resumes it, to its end. With an
// error it ends as the program does.
func (s *small) run(path string) (err error) {
	d, have, _, err := result.ResumeOn(path, s.before)
	if errors.Is(err, result.ErrNothing) {
		d, err = result.CreateOn(path, []byte(smallCampaign), s.plan, s.before)
	}
	if err != nil {
		return err
	}
	records := len(have)
	err = s.measure(d, have, &records)
	if err != nil && records == 0 {
		return errors.Join(err, d.Discard())
	}
	return errors.Join(err, d.Close())
}

func (s *small) measure(d *result.Dir, have []result.Sample, records *int) error {
	if err := d.WriteJSON(result.EnvironmentFile, s.environment(time.Time{})); err != nil {
		return err
	}
	for b := 1; b <= s.plan.MaxBlocks; b++ {
		for _, slot := range plan.Remaining(s.plan.Block(b, nil), have, 0) {
			if s.raw(slot.ID) {
				if err := d.SaveRaw(slot.ID, "client", []string{"tool", slot.ID}, smallOutput, ""); err != nil {
					return err
				}
				if err := d.SaveStacks(slot.ID, "client", "a;b 1\n"); err != nil {
					return err
				}
			}
			if err := d.Append(s.record(slot)); err != nil {
				return err
			}
			*records++
			s.acked++
		}
	}
	if err := d.WriteJSON(result.EnvironmentFile, s.environment(time.Unix(9, 0).UTC())); err != nil {
		return err
	}
	return result.WriteFileOn(filepath.Join(d.Path, result.ReportFile), []byte(smallReport), s.before)
}

// aftermath is a state that a loss of power could leave, and how many records were
// promised to be in it.
type aftermath struct {
	tree  fault.Tree
	acked int
}

// losing runs f on a disk in a new folder, and gives every state that a loss of power
// before any step of it, or after the last, could leave. dies reports a step in whose
// middle the program is killed; nil: none. f is then called once more.
func losing(t *testing.T, dies func(n int, s fault.Step) bool, f func(s *small, root string) error) []aftermath {
	t.Helper()
	root := t.TempDir()
	disk, seen, n, dead := fault.NewDisk(root), map[string]bool{}, 0, false
	var all []aftermath
	var s *small
	look := func() {
		for _, tree := range disk.Losses() {
			if key := fmt.Sprint(s.acked, tree.Key()); !seen[key] {
				seen[key] = true
				all = append(all, aftermath{tree, s.acked})
			}
		}
	}
	s = newSmall(func(step fault.Step) error {
		if dead {
			return unix.EIO // the program has ended: it changes nothing more
		}
		look()
		n++
		if dead = dies != nil && dies(n, step); dead && step.Kind == fault.Write {
			step.Data = step.Data[:len(step.Data)/2]
		}
		if !dead || step.Kind == fault.Write {
			if err := disk.Do(step); err != nil {
				t.Fatal(err)
			}
		}
		if dead {
			return unix.EIO
		}
		return nil
	})
	err := f(s, root)
	if dead {
		dead, dies = false, nil
		err = f(s, root)
	}
	if err != nil {
		t.Fatal(err)
	}
	look()
	// What is not a step of the disk would make all of this worthless.
	if now, err := fault.ReadTree(root); err != nil || now.Key() != disk.Now().Key() {
		t.Fatalf("the folder holds (%v)\n%s\nthe disk has\n%s", err, now.Key(), disk.Now().Key())
	}
	return all
}

// check writes a state into a folder and does there what a user would.
func (a aftermath) check(t *testing.T, shown map[string]bool) {
	t.Helper()
	root := t.TempDir()
	if err := a.tree.Write(root); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "results", "r")
	s := newSmall(func(fault.Step) error { return nil })
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("after a loss of power with %d records promised: "+format+"\nleft were:\n%s", append(append([]any{a.acked}, args...), a.tree.Key())...)
	}
	rec, err := result.Read(path)
	if err != nil && a.acked > 0 {
		fail("read: %v", err)
		return
	}
	if err == nil {
		if why := s.whole(rec, a.acked); why != "" {
			fail("%s", why)
		}
		if key := fmt.Sprint(len(rec.Samples), rec.Torn > 0, rec.Complete()); len(rec.Samples) > 0 && !shown[key] {
			shown[key] = true
			var said bytes.Buffer
			root := cli.Root(&said, io.Discard)
			root.SetArgs([]string{"report", path})
			if err := root.ExecuteContext(t.Context()); err != nil || !strings.Contains(said.String(), "bridge") && len(rec.Samples) > 1 {
				fail("report: %v\n%s", err, said.String())
			}
		}
	}
	if err := s.run(path); err != nil {
		fail("resume: %v", err)
		return
	}
	if s.acked > len(s.ids)-a.acked {
		fail("%d records were measured again", s.acked-len(s.ids)+a.acked)
	}
	rec, err = result.Read(path)
	if err != nil {
		fail("read at the end: %v", err)
		return
	}
	if why := s.whole(rec, len(s.ids)); why != "" || !rec.Complete() || rec.Torn > 0 {
		fail("at the end: %s, complete %v, %d bytes torn", why, rec.Complete(), rec.Torn)
	}
	left, err := filepath.Glob(filepath.Join(path, ".tmp-*"))
	if raw, _ := filepath.Glob(filepath.Join(path, result.RawDir, "*", ".tmp-*")); err != nil || len(left)+len(raw) > 0 {
		fail("half-written files are left: %v %v (%v)", left, raw, err)
	}
}

// whole says what is wrong with a directory: a record that was promised is missing, one is
// doubled or out of its order, a file is half-written.
func (s *small) whole(rec result.Recorded, promised int) string {
	if n := len(rec.Samples); n < promised || n > promised+1 || n > len(s.ids) {
		return fmt.Sprintf("%d records", n)
	}
	if err := s.plan.Check(rec.Samples, 0); err != nil {
		return err.Error()
	}
	if string(rec.Campaign) != smallCampaign {
		return fmt.Sprintf("the campaign is %q", rec.Campaign)
	}
	if _, err := plan.Parse(rec.Plan); err != nil {
		return err.Error()
	}
	if rec.Complete() && len(rec.Samples) < len(s.ids) {
		return fmt.Sprintf("%d records are called complete", len(rec.Samples))
	}
	for i, r := range rec.Samples {
		if r.ID != s.ids[i] {
			return fmt.Sprintf("record %d is %s, want %s", i, r.ID, s.ids[i])
		}
		if r.Raw == "" {
			continue
		}
		out, err := os.ReadFile(filepath.Join(rec.Path, r.Raw, "client.stdout"))
		if err != nil || string(out) != smallOutput {
			return fmt.Sprintf("%s has the output %q (%v)", r.ID, out, err)
		}
		stacks := 0
		if err := result.EachStack(rec.Path, &r, func(result.Stack) { stacks++ }); err != nil || stacks != 1 {
			return fmt.Sprintf("%s has %d stacks (%v)", r.ID, stacks, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(rec.Path, result.ReportFile)); err == nil && string(text) != smallReport {
		return fmt.Sprintf("the report is %q", text)
	}
	return ""
}

// TestPowerLossAtEveryStep: whatever a loss of power leaves of a campaign, of one that is
// killed in the middle of a record and resumed, and of one that is taken back, every record
// that was promised is read and reported, none is doubled, no half-written file is taken
// for a whole one, and --resume completes it.
func TestPowerLossAtEveryStep(t *testing.T) {
	labtest.Slow(t)
	whole := func(s *small, root string) error { return s.run(filepath.Join(root, "results", "r")) }
	torn := func(_ int, s fault.Step) bool {
		return s.Kind == fault.Write && filepath.Base(s.Path) == result.SamplesFile && bytes.Contains(s.Data, []byte(`"block":2`))
	}
	for name, states := range map[string][]aftermath{
		"a campaign":                     losing(t, nil, whole),
		"killed in a record and resumed": losing(t, torn, whole),
		"taken back": losing(t, nil, func(s *small, root string) error {
			d, err := result.CreateOn(filepath.Join(root, "results", "r"), []byte(smallCampaign), s.plan, s.before)
			if err != nil {
				return err
			}
			return errors.Join(d.WriteJSON(result.EnvironmentFile, s.environment(time.Time{})),
				d.SaveRaw(s.ids[0], "client", []string{"tool"}, smallOutput, ""), d.Discard())
		}),
	} {
		t.Run(name, func(t *testing.T) {
			if len(states) < 20 {
				t.Errorf("only %d states", len(states))
			}
			shown := map[string]bool{}
			for _, a := range states {
				if a.check(t, shown); t.Failed() {
					return
				}
			}
			t.Logf("%d states", len(states))
		})
	}
}

// TestEveryStepFails: a disk that fails one step, or every step from one on, ends the run
// with that error. What it leaves is resumed once the disk is sound.
func TestEveryStepFails(t *testing.T) {
	labtest.Slow(t)
	for name, c := range map[string]struct {
		why  error
		once bool
	}{"one error of the device": {unix.EIO, true}, "a full disk": {unix.ENOSPC, false}} {
		t.Run(name, func(t *testing.T) {
			for k := 1; ; k++ {
				n, failed := 0, false
				root := t.TempDir()
				path := filepath.Join(root, "results", "r")
				s := newSmall(func(fault.Step) error {
					if n++; n == k || n > k && !c.once {
						failed = true
						return c.why
					}
					return nil
				})
				err := s.run(path)
				if !failed {
					if err != nil || k < 50 {
						t.Errorf("%d steps, %v", k, err)
					}
					return
				}
				if !errors.Is(err, c.why) || !strings.Contains(err.Error(), root) {
					t.Errorf("step %d failed, and the run ended with %v", k, err)
				}
				again := newSmall(func(fault.Step) error { return nil })
				if err := again.run(path); err != nil {
					t.Fatalf("step %d failed; resume: %v", k, err)
				}
				rec, err := result.Read(path)
				if err != nil || !rec.Complete() || rec.Torn > 0 {
					t.Fatalf("step %d failed; after resume: %v", k, err)
				}
				if why := again.whole(rec, len(s.ids)); why != "" {
					t.Fatalf("step %d failed; after resume: %s", k, why)
				}
			}
		})
	}
}
