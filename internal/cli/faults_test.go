package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
)

// steady is a campaign that lasts a few seconds: a number of slices that is left open would
// grow with the noise of a busy machine.
const steady = `name: steady
networks: [host, bridge]
workloads: [{name: tcp_rr}]
sampling: {slices: 20, warmup_seconds: 0.02, explain_seconds: 0.05, min_blocks: 4, max_blocks: 4}
`

// inCampaign runs what happens to a campaign, and checks that nothing is left.
func inCampaign(t *testing.T, campaign string, happens func(s *survivor, before labtest.Trace)) {
	t.Helper()
	s := newSurvivor(t)
	s.write(campaign)
	before := labtest.TakeTrace(t, s.ours)
	happens(s, before)
	s.leavesNothing(before)
}

// takeDown removes the labs of a test that failed: once its folders are gone, no command
// knows these labs.
func (s *survivor) takeDown() {
	if !s.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := s.runner.Run(ctx, s.command("lab", "down", "--all")); err != nil {
		s.t.Errorf("labs may be left: %v", err)
	}
}

// middle waits until a run has some records, not all.
func (s *survivor) middle(r *started) {
	s.t.Helper()
	r.until(s.t, func() bool { return len(s.lines()) >= 3 })
	if !r.running() {
		s.t.Fatalf("the run was over at once:\n%s", r.Stderr())
	}
}

// ends checks the exit status, and that the one error holds some words.
func (r *started) ends(t *testing.T, status int, words ...string) {
	t.Helper()
	got, said := r.wait(t), string(r.Stderr())
	if got != status {
		t.Errorf("status %d, want %d; it said:\n%s", got, status, said)
	}
	if n := strings.Count("\n"+said, "\ncnibench: "); status != 0 && n != 1 {
		t.Errorf("%d errors, want one clear one:\n%s", n, said)
	}
	for _, w := range words {
		if !strings.Contains(said, w) {
			t.Errorf("no word of %q:\n%s", w, said)
		}
	}
}

func TestInterruptedRunSaysHowItGoesOn(t *testing.T) {
	t.Parallel()
	inCampaign(t, steady, func(s *survivor, before labtest.Trace) {
		r := s.run()
		s.middle(r)
		if err := syscall.Kill(r.PID(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		r.ends(t, 1, "cnibench: interrupted", "records are saved", fmt.Sprintf("cnibench run %s --resume --out %s", s.campaign(), s.out))
		s.leavesNothing(before)
		s.resumed()
	})
}

// A dropped ssh session sends SIGHUP, often twice, and takes the terminal away. What
// was started with nohup goes on.
func TestHangup(t *testing.T) {
	t.Parallel()
	inCampaign(t, steady, func(s *survivor, before labtest.Trace) {
		first := s.command("run", s.campaign(), "--out", s.out, "--seed", "7")
		first.Argv = append([]string{"env", "--default-signal=HUP"}, first.Argv...) // these tests may run under nohup
		r := s.start(first)
		s.middle(r)
		for range 2 {
			if err := syscall.Kill(r.PID(), syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		}
		r.ends(t, 1, "cnibench: interrupted", "records are saved")
		s.leavesNothing(before)
		c := s.command("run", s.campaign(), "--out", s.out, "--resume")
		c.Argv = append([]string{"sh", "-c", `trap "" HUP; exec "$@"`, "nohup"}, c.Argv...)
		records := len(s.lines())
		r = s.start(c)
		r.until(t, func() bool { return len(s.lines()) > records })
		if err := syscall.Kill(r.PID(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if r.wait(t) != 0 {
			t.Errorf("with SIGHUP ignored: %s", r.Stderr())
		}
	})
}

func TestStoppedController(t *testing.T) {
	t.Parallel()
	inCampaign(t, steady, func(s *survivor, _ labtest.Trace) {
		r := s.run()
		s.middle(r)
		fault.Stop(t, r.PID())
		time.Sleep(10 * time.Second)
		fault.Continue(t, r.PID())
		r.ends(t, 0)
		s.finished(nil)
	})
}

func TestResultsDeletedInMidRun(t *testing.T) {
	t.Parallel()
	inCampaign(t, steady, func(s *survivor, before labtest.Trace) {
		r := s.run()
		s.middle(r)
		if err := os.RemoveAll(s.out); err != nil {
			t.Fatal(err)
		}
		r.ends(t, 1, "the result directory vanished during the run")
		if strings.Contains(string(r.Stderr()), "safe") {
			t.Errorf("deleted records are called safe:\n%s", r.Stderr())
		}
		s.leavesNothing(before)
		r = s.resume()
		r.ends(t, 0, "starting from the beginning")
		s.finished(nil)
	})
}

func TestSecondRunIntoADirectoryIsRefused(t *testing.T) {
	t.Parallel()
	inCampaign(t, steady, func(s *survivor, _ labtest.Trace) {
		first := s.run()
		s.middle(first)
		s.run().ends(t, 1, "not empty")
		s.resume().ends(t, 1, "another run is writing this result directory")
		if !first.running() {
			t.Error("the first run was over before the second was refused")
		}
		first.ends(t, 0)
		s.finished(nil)
	})
}

// onDisk runs a script of the shell with D a small disk of its own, in a mount
// namespace that ends with it; C runs the campaign. With -n, mount keeps no list of
// its own, whose folder /run/mount the first mount on a machine would make.
func (s *survivor) onDisk(size, script string) *started {
	disk := filepath.Join(s.work, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.out = filepath.Join(disk, "r")
	c := s.command("run", s.campaign(), "--seed", "7", "--out", s.out)
	resume := s.command("run", s.campaign(), "--resume", "--out", s.out)
	head := fmt.Sprintf("D=%s; begin() { %s; }; resume() { %s; }; mount -n -t tmpfs -o size=%s cnb-test $D\n",
		disk, exec.Cmd{Argv: c.Argv}, exec.Cmd{Argv: resume.Argv}, size)
	c.Argv = []string{"unshare", "--mount", "--propagation", "private", "sh", "-c", head + script}
	return s.start(c)
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	labtest.Tool(t, "unshare", "util-linux")
	inCampaign(t, strings.ReplaceAll(steady, "tcp_rr", "tcp_rr, message_bytes: [1, 64, 512]"), func(s *survivor, _ labtest.Trace) {
		r := s.onDisk("80k", `begin; echo "status $?" >&2; cp -r $D/r $D/../kept; mount -n -o remount,size=8m $D; resume || exit 9; cp -r $D/r $D/../whole`)
		r.ends(t, 0, "no space left on device", "records are saved", "status 1", "resuming")
		s.out = filepath.Join(s.work, "kept")
		before := s.lines()
		if len(before) == 0 {
			t.Error("nothing was recorded before the disk was full")
		}
		s.out = filepath.Join(s.work, "whole")
		s.finished(before)
	})
}

func TestReadOnlyResults(t *testing.T) {
	t.Parallel()
	labtest.Tool(t, "unshare", "util-linux")
	inCampaign(t, steady, func(s *survivor, _ labtest.Trace) {
		r := s.onDisk("8m", `mount -n -o remount,ro $D; begin; echo "status $?" >&2; mount -n -o remount,rw $D; begin || exit 9; cp -r $D/r $D/../whole`)
		r.ends(t, 0, "read-only file system", "status 1")
		if strings.Contains(string(r.Stderr()), "cleared") {
			t.Errorf("a lab was built for results that cannot be written:\n%s", r.Stderr())
		}
		s.out = filepath.Join(s.work, "whole")
		s.finished(nil)
	})
}

func TestResultsBecomeReadOnlyInMidRun(t *testing.T) {
	t.Parallel()
	labtest.Tool(t, "unshare", "util-linux")
	inCampaign(t, steady, func(s *survivor, _ labtest.Trace) {
		// samples.jsonl is open and stays writable; environment.json, at the
		// end, does not.
		r := s.onDisk("8m", `begin & P=$!
while [ "$(wc -l <$D/r/samples.jsonl 2>/dev/null || echo 0)" -lt 3 ]; do sleep 0.02; done
mount -n --bind $D/r $D/r && mount -n -o remount,ro,bind $D/r
wait $P; echo "status $?" >&2; umount -n $D/r; resume || exit 9; cp -r $D/r $D/../whole`)
		r.ends(t, 0, "read-only file system", "records are saved", "status 1")
		s.out = filepath.Join(s.work, "whole")
		s.finished(nil)
	})
}

func TestToolVanishesInMidRun(t *testing.T) {
	t.Parallel()
	labtest.Tool(t, "iperf3", "iperf3")
	inCampaign(t, strings.ReplaceAll(withTool, "[host]", "[host, bridge]"), func(s *survivor, before labtest.Trace) {
		iperf3 := s.ownPath()
		r := s.run()
		r.until(t, func() bool { return len(s.lines()) >= 2 })
		if err := os.Rename(iperf3, iperf3+".away"); err != nil {
			t.Fatal(err)
		}
		r.ends(t, 1, "in mid-run: iperf3 is not installed at", "apt-get install iperf3", "records are saved")
		s.leavesNothing(before)
		if err := os.Rename(iperf3+".away", iperf3); err != nil {
			t.Fatal(err)
		}
		s.resumed()
	})
}

// ownPath gives the survivor a PATH of links, so that a tool can vanish from it.
func (s *survivor) ownPath() (iperf3 string) {
	s.path = filepath.Join(s.work, "path")
	if err := os.Mkdir(s.path, 0o755); err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"iperf3", "iptables", "nft", "ip"} {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(path, filepath.Join(s.path, name)); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	return filepath.Join(s.path, "iperf3")
}

// TestStoppedAgent: an end that is stopped and not killed answers nobody. Its sample fails
// within five seconds with that reason, and the end is replaced, also one that takes no part in samples.
func TestStoppedAgent(t *testing.T) {
	t.Parallel()
	const soon = 5 * time.Second
	inCampaign(t, strings.NewReplacer("slices: 20", "slices: 10", "_blocks: 4", "_blocks: 12").Replace(steady), func(s *survivor, _ labtest.Trace) {
		r := s.run()
		s.middle(r)
		agents := s.victims("agent")
		if len(agents) == 0 {
			t.Fatal("there is no agent to stop")
		}
		for _, pid := range agents { // those too that take no part in samples
			fault.Stop(t, pid)
		}
		stopped := time.Now()
		var reason string
		r.until(t, func() bool {
			for _, line := range s.lines() {
				var sample result.Sample
				if err := json.Unmarshal([]byte(line), &sample); err == nil && sample.Status == result.StatusFailed {
					reason = sample.Reason
				}
			}
			return reason != ""
		})
		if took := time.Since(stopped); took > soon || !strings.Contains(reason, "the agent is gone") {
			t.Errorf("after %v a sample failed: %q; want one within %v, whose agent was ended as it does not answer", took, reason, soon)
		}
		// Each try finds one stopped end, so both tries of a sample may fail.
		rec := s.endsAsRecorded(r)
		for _, sample := range rec.Samples {
			if sample.Block > 5 && sample.Status != result.StatusOK {
				t.Errorf("%s is %s, and all ends were replaced: %s", sample.ID, sample.Status, sample.Reason)
			}
		}
	})
}

// TestLinkFlap: what is under way when a link goes down may fail, with its
// reason; the run goes on, and measures again once the link is back.
func TestLinkFlap(t *testing.T) {
	t.Parallel()
	labtest.Tool(t, "nsenter", "util-linux")
	inCampaign(t, steady, func(s *survivor, _ labtest.Trace) {
		r := s.run()
		s.middle(r)
		for _, state := range []string{"down", "up"} {
			for _, ns := range s.namespaces("host", "node1") {
				if _, err := s.runner.Run(t.Context(), exec.Cmd{Argv: []string{"nsenter", "--net=/run/netns/" + ns, "ip", "link", "set", "eth0", state}}); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(300 * time.Millisecond)
		}
		// Where both tries of a sample fell into the cut, it failed for good.
		rec := s.endsAsRecorded(r)
		for _, sample := range rec.Samples {
			if sample.Status != result.StatusOK {
				t.Logf("%s %s: %s", sample.ID, sample.Status, sample.Reason)
			}
			if sample.Block == 4 && sample.Cell.Network == "bridge" && sample.Status != result.StatusOK {
				t.Errorf("the link of another network was down, and %s is %s: %s", sample.ID, sample.Status, sample.Reason)
			}
		}
		if last := rec.Samples[len(rec.Samples)-1]; last.Status != result.StatusOK {
			t.Errorf("the last sample is %s: %s", last.Status, last.Reason)
		}
	})
}

// endsAsRecorded waits for the end of a run in which samples may fail for good, and reads
// its records: the exit status is 4 exactly where the last try of one failed.
func (s *survivor) endsAsRecorded(r *started) result.Recorded {
	s.t.Helper()
	status := r.wait(s.t)
	s.finished(nil)
	rec, err := result.Read(s.out)
	if err != nil {
		s.t.Fatal(err)
	}
	last := map[string]string{}
	for _, sample := range rec.Samples {
		last[sample.ID] = sample.Status
	}
	want := 0
	for _, outcome := range last {
		if outcome == result.StatusFailed {
			want = 4
		}
	}
	if status != want {
		s.t.Errorf("status %d, want %d by the records:\n%s", status, want, r.Stderr())
	}
	return rec
}

// namespaces are those of a network's places of the lab that runs.
func (s *survivor) namespaces(network, ending string) []string {
	s.t.Helper()
	list, err := s.runner.Run(s.t.Context(), s.command("lab", "list", "--json"))
	if err != nil {
		s.t.Fatal(err)
	}
	var labs []struct {
		Places []struct{ Namespace, Network string }
	}
	if err := json.Unmarshal(list.Stdout, &labs); err != nil {
		s.t.Fatalf("%v: %s", err, list.Stdout)
	}
	var out []string
	for _, l := range labs {
		for _, p := range l.Places {
			if p.Network == network && strings.HasSuffix(p.Namespace, ending) {
				out = append(out, p.Namespace)
			}
		}
	}
	if len(out) == 0 {
		s.t.Fatalf("no %s of %s in %s", ending, network, list.Stdout)
	}
	return out
}
