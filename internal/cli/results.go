package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
)

// results is the result directory that a run writes.
type results struct {
	dir  *result.Dir
	plan plan.Plan
	// recorded and environment are what a run before left there.
	recorded    []result.Sample
	environment *result.Environment
}

// openResults makes the result directory or opens the one to resume; then
// the plan is the recorded one.
func openResults(path string, c campaign.Campaign, f runFlags, stderr io.Writer) (results, error) {
	if f.out == "" {
		f.out = filepath.Join(resultsDir, c.Name+"-"+time.Now().Format("20060102-150405"))
	}
	if f.resume {
		r, err := resumeResults(c, f, stderr)
		if !errors.Is(err, result.ErrNothing) {
			return r, err
		}
		fmt.Fprintf(stderr, "nothing is recorded in %s: starting from the beginning\n", f.out)
	}
	text, err := f.text, error(nil)
	if text == nil {
		if text, err = os.ReadFile(path); err != nil {
			return results{}, err
		}
	}
	r := results{plan: newPlan(c, f)}
	r.dir, err = result.Create(f.out, text, r.plan)
	return r, err
}

// resumeResults opens a directory to resume; result.ErrNothing where the
// run before ended before anything was in it.
func resumeResults(c campaign.Campaign, f runFlags, stderr io.Writer) (results, error) {
	dir, recorded, cut, err := result.Resume(f.out)
	if err != nil {
		return results{}, err
	}
	if cut.Bytes > 0 {
		fmt.Fprintf(stderr, "repaired: a torn last line of %d bytes was cut off %s and kept in %s\n", cut.Bytes, filepath.Join(f.out, result.SamplesFile), cut.Kept)
	}
	r := results{dir: dir, recorded: recorded}
	if r.plan, err = plan.Load(filepath.Join(f.out, result.PlanFile)); err == nil {
		err = r.fits(c, f)
	}
	if err != nil {
		return results{}, errors.Join(usageError{fmt.Errorf("%s: cannot resume: %w", f.out, err)}, dir.Close())
	}
	if r.environment, err = result.ReadEnvironment(f.out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return results{}, errors.Join(err, dir.Close())
	}
	fmt.Fprintf(stderr, "resuming %s with %d records\n", f.out, len(recorded))
	return r, nil
}

// uncontrolled reports that a result directory was begun by a version that had no
// conditions: it is gone on with in the same way.
func uncontrolled(dir string) bool {
	p, err := plan.Load(filepath.Join(dir, result.PlanFile))
	return err == nil && p.Schema < plan.Schema
}

// fits reports why this campaign cannot resume what is recorded.
func (r results) fits(c campaign.Campaign, f runFlags) error {
	if f.nullTest && !r.plan.NullTest {
		return errors.New("it was not started with --null-test")
	}
	f.nullTest = r.plan.NullTest
	if err := r.plan.Same(newPlan(c, f)); err != nil {
		return err
	}
	if err := r.plan.Check(r.recorded, c.Sampling.Retries); err != nil {
		return err
	}
	return sameSampling(f.out, c, uncontrolled(f.out))
}

// newPlan is the plan of a campaign as the flags ask for it.
func newPlan(c campaign.Campaign, f runFlags) plan.Plan {
	if f.nullTest {
		return plan.NewNullTest(c, f.seed)
	}
	p := plan.New(c, f.seed)
	if f.study != nil {
		p.Cells = slices.DeleteFunc(p.Cells, f.study.leavesOut)
	}
	return p
}

// sameSampling refuses to go on under other rules than those that the
// directory's campaign.yaml states. before reports that a version without conditions began it.
func sameSampling(dir string, c campaign.Campaign, before bool) error {
	path := filepath.Join(dir, result.CampaignFile)
	data, err := result.ReadFile(path)
	if err != nil {
		return err
	}
	old, err := campaign.Parse(path, data, recordedKnown())
	if err != nil {
		return err
	}
	if before {
		old = old.Uncontrolled()
	}
	if old.Sampling != c.Sampling {
		return fmt.Errorf("the campaign's sampling was %+v, is %+v; undo the change, or start a new directory", old.Sampling, c.Sampling)
	}
	return nil
}

// interrupted says how a run that ended early goes on, and removes the
// directory of one that never began.
func interrupted(err error, path string, dir *result.Dir, records int, f runFlags, stderr io.Writer) error {
	if records == 0 {
		return errors.Join(err, dir.Discard())
	}
	if errors.Is(err, context.Canceled) {
		err = errors.Join(errors.New("interrupted"), otherErrors(err))
	}
	if there := dir.StillThere(); there == nil {
		fmt.Fprintf(stderr, "%d records are saved; resume with: %s\n", records, resumeCommand(path, dir.Path, f))
	}
	return errors.Join(err, dir.Close())
}

// otherErrors is what else went wrong where a run was interrupted: of that, people
// know themselves.
func otherErrors(err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	var many interface{ Unwrap() []error }
	if !errors.As(err, &many) {
		return nil
	}
	var rest []error
	for _, e := range many.Unwrap() {
		rest = append(rest, otherErrors(e))
	}
	return errors.Join(rest...)
}

// resumeCommand resumes a run, as it can be pasted into a shell.
func resumeCommand(path, dir string, f runFlags) string {
	if f.text != nil { // a copy with the flags' changes is in the directory
		path = filepath.Join(dir, result.CampaignFile)
	}
	argv := []string{"cnibench", "run", path, "--resume", "--out", dir}
	if f.study != nil {
		argv = append(slices.Clone(f.study.argv), "--resume", "--out", dir)
	}
	if f.elsewhere {
		argv = append(argv, "--allow-changed-environment")
	}
	if f.testbed != "" {
		argv = append(argv, "--testbed", f.testbed)
	}
	if f.allowPrivileged {
		argv = append(argv, "--allow-privileged")
	}
	if f.allowTuning {
		argv = append(argv, "--allow-host-tuning")
	}
	if f.hosts.inventory != "" {
		argv = append(argv, "--inventory", f.hosts.inventory)
	}
	if f.hosts.keepGoing {
		argv = append(argv, "--keep-going")
	}
	for _, flag := range [][2]string{{"--kubeconfig", f.cluster.kubeconfig}, {"--context", f.cluster.context}, {"--namespace", f.cluster.namespace}, {"--image", f.image}} {
		if flag[1] != "" {
			argv = append(argv, flag[0], flag[1])
		}
	}
	for _, p := range f.cniPath {
		argv = append(argv, "--cni-path", p)
	}
	return exec.Cmd{Argv: argv}.String()
}
