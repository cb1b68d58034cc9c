package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
)

// survivor is one campaign that something is done to. Several can run at the same time: each
// has folders, labs and a program of its own.
type survivor struct {
	t      *testing.T
	runner *exec.Runner
	ours   labtest.Ours
	work   string // holds all files of it
	out    string // the result directory
	path   string // PATH of the program; "" is this one's
	// flags are further ones of run.
	flags []string

	mu   sync.Mutex
	labs map[string]bool // that were seen running
}

func newSurvivor(t *testing.T) *survivor {
	t.Helper()
	labtest.Root(t)
	labtest.Tool(t, "/usr/lib/cni/bridge", "containernetworking-plugins")
	work := labtest.OpenTempDir(t)
	s := &survivor{
		t: t, runner: exec.NewRunner(), work: work, out: filepath.Join(work, "r"), labs: map[string]bool{},
		// A link of its own, by which its processes are found.
		ours: labtest.Ours{Dir: filepath.Join(work, "labs"), Program: filepath.Join(work, "cnibench")},
	}
	t.Cleanup(s.runner.Close)
	t.Cleanup(s.takeDown)
	if err := os.Link(filepath.Join(built, "cnibench"), s.ours.Program); err != nil { // in one file system: both are temporary files
		t.Fatal(err)
	}
	return s
}

// tiny is the campaign of a network and its baseline: three blocks of samples
// that last next to nothing.
func tiny(network string) string {
	return fmt.Sprintf(`name: tiny
networks: [host, %s]
workloads: [{name: tcp_rr}]
sampling: {slices: 8, warmup_seconds: 0.01, explain_seconds: 0.05, min_blocks: 3, max_blocks: 3}
`, network)
}

// withTool is the shortest campaign that runs iperf3, which counts whole seconds.
const withTool = `name: tool
networks: [host]
workloads: [{name: iperf3}]
sampling: {seconds: 1, warmup_seconds: 0, min_blocks: 2, max_blocks: 2}
`

func (s *survivor) write(campaign string) {
	s.t.Helper()
	if err := os.WriteFile(s.campaign(), []byte(campaign), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *survivor) campaign() string { return filepath.Join(s.work, "c.yaml") }

// command is the program in the survivor's environment.
func (s *survivor) command(args ...string) exec.Cmd {
	c := exec.Cmd{
		Argv: append([]string{s.ours.Program}, args...), Dir: s.work,
		Env: []string{"CNIBENCH_STATE_DIR=" + s.ours.Dir, "TMPDIR=" + s.work, "LC_ALL=C.UTF-8"},
	}
	if s.path != "" {
		c.Env = append(c.Env, "PATH="+s.path)
	}
	return c
}

// started is the program as it runs.
type started struct {
	*exec.Process
	stdout *bytes.Buffer
	ended  chan struct{} // closed when the program is over; err is then set
	err    error
}

func (s *survivor) start(c exec.Cmd) *started {
	s.t.Helper()
	p, err := s.runner.StartPiped(s.t.Context(), c)
	if err != nil {
		s.t.Fatal(err)
	}
	r := &started{Process: p, stdout: &bytes.Buffer{}, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		_, _ = io.Copy(r.stdout, p.Stdout)
		r.err = p.Wait()
	}()
	go func() {
		for {
			select {
			case <-r.ended:
				return
			case <-time.After(10 * time.Millisecond):
				s.lookForLabs()
			}
		}
	}()
	return r
}

// lookForLabs notes which labs are up.
func (s *survivor) lookForLabs() {
	entries, err := os.ReadDir(s.ours.Dir)
	if err != nil {
		return // there is none
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		if e.IsDir() {
			s.labs[e.Name()] = true
		}
	}
}

// wait gives the program's exit status, -1 for one that a signal ended.
func (r *started) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(90 * time.Second):
		_ = r.Kill() // it may have ended just now
		t.Fatalf("the program does not end; it said:\n%s", r.Stderr())
	}
	var coder interface{ ExitCode() int }
	switch {
	case r.err == nil:
		return 0
	case errors.As(r.err, &coder):
		return coder.ExitCode()
	}
	t.Fatal(r.err)
	return 0
}

// running reports whether the program is not over yet.
func (r *started) running() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// until waits until something is the case, or the program is over.
func (r *started) until(t *testing.T, is func() bool) {
	t.Helper()
	for begin := time.Now(); r.running() && !is(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("that does not come to be; the program said:\n%s", r.Stderr())
		}
	}
}

// run begins the campaign, resume continues it.
func (s *survivor) run() *started {
	return s.start(s.command(append([]string{"run", s.campaign(), "--out", s.out, "--seed", "7"}, s.flags...)...))
}

func (s *survivor) resume() *started {
	return s.start(s.command(append([]string{"run", s.campaign(), "--out", s.out, "--resume"}, s.flags...)...))
}

// lines are the whole lines of samples.jsonl.
func (s *survivor) lines() []string {
	data, err := os.ReadFile(filepath.Join(s.out, result.SamplesFile))
	if err != nil {
		return nil
	}
	all := strings.SplitAfter(string(data), "\n")
	return all[:len(all)-1]
}

// finished checks that what is recorded is the plan: every sample measured,
// none twice, and all that existed before exists still, unchanged.
func (s *survivor) finished(before []string) {
	s.t.Helper()
	rec, err := result.Read(s.out)
	if err != nil {
		s.t.Fatal(err)
	}
	p, err := plan.Parse(rec.Plan)
	if err != nil {
		s.t.Fatal(err)
	}
	unsupported := map[result.Cell]bool{}
	for _, sample := range rec.Samples {
		if sample.Status == result.StatusUnsupported {
			unsupported[sample.Cell] = true
		}
	}
	active := func(cell int) bool { return !unsupported[p.Cells[cell]] }
	const retries = 1
	if err := p.Check(rec.Samples, retries); err != nil {
		s.t.Errorf("records that are not the plan's: %v", err)
	}
	for b := 1; b <= p.MaxBlocks; b++ {
		if left := plan.Remaining(p.Block(b, active), rec.Samples, retries); len(left) > 0 {
			s.t.Errorf("block %d lacks %v", b, left)
		}
	}
	if !rec.Complete() || rec.Torn > 0 {
		s.t.Errorf("complete %v, %d bytes torn", rec.Complete(), rec.Torn)
	}
	now := s.lines()
	if len(now) < len(before) || !slices.Equal(now[:len(before)], before) {
		s.t.Errorf("records were lost: %d lines were there, now %d", len(before), len(now))
	}
	for _, pattern := range []string{"r/.tmp-*", "r/raw/*/.tmp-*", "cnb-agent-*"} {
		if left, err := filepath.Glob(filepath.Join(s.work, pattern)); err != nil || len(left) > 0 {
			s.t.Errorf("left behind: %v (%v)", left, err)
		}
	}
}

// resumed resumes the campaign to its end and checks the result.
func (s *survivor) resumed() {
	s.t.Helper()
	before := s.lines()
	r := s.resume()
	if status := r.wait(s.t); status != 0 {
		s.t.Fatalf("resume ended with status %d:\n%s", status, r.Stderr())
	}
	s.finished(before)
}

// leavesNothing compares the machine with its state before.
func (s *survivor) leavesNothing(before labtest.Trace) {
	s.t.Helper()
	s.lookForLabs()
	var labs []string
	for id := range s.labs {
		labs = append(labs, id)
	}
	s.ours.Check(s.t, before, labs)
}

// victims are the processes of the campaign whose command line holds a word.
func (s *survivor) victims(word string) []int {
	var pids []int
	for _, pid := range s.ours.PIDs(s.t) {
		argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && slices.Contains(strings.Split(string(argv), "\x00"), word) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestSurvivesKills kills, a hundred times, and in make test-all three hundred times, the
// controller, an agent or a tool of a small campaign at a random moment, from the building
// of the lab to the report. Each is followed by --resume.
func TestSurvivesKills(t *testing.T) {
	t.Parallel()
	labtest.Turn(t, labtest.Studies)
	labtest.Root(t)
	labtest.Tool(t, "iperf3", "iperf3")
	networks := []string{"bridge", "flannel/vxlan", "calico/direct", "macvlan", "flannel/host-gw"}
	for _, victim := range []struct {
		name       string
		times, all int
		kill       func(s *survivor, r *rand.Rand, i int) bool
	}{
		{"controller", 60, 180, func(s *survivor, r *rand.Rand, i int) bool {
			s.write(tiny(networks[i%len(networks)]))
			run := s.run()
			return s.killController(run, r)
		}},
		{"agent", 30, 90, func(s *survivor, r *rand.Rand, i int) bool {
			s.write(tiny(networks[i%len(networks)]))
			return s.killPart("agent", time.Duration(r.IntN(500))*time.Millisecond, r)
		}},
		{"tool", 10, 30, func(s *survivor, r *rand.Rand, _ int) bool {
			s.write(withTool)
			return s.killPart("iperf3", time.Duration(r.IntN(1000))*time.Millisecond, r)
		}},
	} {
		t.Run(victim.name, func(t *testing.T) {
			t.Parallel()
			try := func(t *testing.T, i int) bool {
				s := newSurvivor(t)
				before := labtest.TakeTrace(t, s.ours)
				killed := victim.kill(s, rand.New(rand.NewPCG(5, uint64(i))), i)
				t.Logf("killed %v with %d records", killed, len(s.lines()))
				s.resumed()
				s.leavesNothing(before)
				return killed
			}
			from := killTimes(t, 0, victim.times, try)
			t.Run("all", func(t *testing.T) {
				labtest.Long(t)
				killTimes(t, from, victim.all-victim.times, try)
			})
		})
	}
}

// killTimes tries until so many tries, which are numbered, came before the end of the
// campaign. It gives the number after the last. Tries run at the same time.
func killTimes(t *testing.T, from, times int, try func(t *testing.T, i int) bool) int {
	t.Helper()
	var killed atomic.Int32
	i := from
	for int(killed.Load()) < times {
		if i-from > 2*times {
			t.Fatalf("only %d of %d tries came before the end of the campaign", killed.Load(), i-from)
		}
		begin, end := i, i+times-int(killed.Load())
		i = end
		t.Run(fmt.Sprintf("from %d", begin), func(t *testing.T) { // ends when all of its tries have
			for nth := begin; nth < end; nth++ {
				t.Run(fmt.Sprint(nth), func(t *testing.T) {
					t.Parallel()
					if try(t, nth) {
						killed.Add(1)
					}
				})
			}
		})
	}
	return i
}

// killController kills it at a random moment of the time that a campaign takes:
// mostly that is after a number of records, sometimes while the lab is built.
func (s *survivor) killController(run *started, r *rand.Rand) bool {
	return s.killWithin(run, r, 6)
}

// killWithin is killController for a campaign of so many records.
func (s *survivor) killWithin(run *started, r *rand.Rand, most int) bool {
	records := r.IntN(most+2) - 2
	run.until(s.t, func() bool { return len(s.lines()) >= max(0, records) })
	wait := time.Duration(r.IntN(100)) * time.Millisecond
	if records < 0 {
		wait = time.Duration(r.IntN(500)) * time.Millisecond
	}
	time.Sleep(wait)
	err := syscall.Kill(run.PID(), syscall.SIGKILL)
	status := run.wait(s.t)
	if status == 0 {
		return false // it was over before
	}
	if err != nil || status != -1 {
		s.t.Errorf("kill: %v, status %d: %s", err, status, run.Stderr())
	}
	return true
}

// killPart kills one of the processes that the campaign runs, a while after
// there is one. The campaign must then finish on its own.
func (s *survivor) killPart(word string, wait time.Duration, r *rand.Rand) bool {
	run := s.run()
	run.until(s.t, func() bool { return len(s.victims(word)) > 0 })
	time.Sleep(wait)
	killed := false
	run.until(s.t, func() bool {
		pids := s.victims(word)
		killed = len(pids) > 0 && syscall.Kill(pids[r.IntN(len(pids))], syscall.SIGKILL) == nil
		return killed
	})
	if status := run.wait(s.t); status > 1 {
		s.t.Errorf("status %d: %s", status, run.Stderr())
	}
	return killed
}
