package traffic

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
)

// jobTests are all tests with many ends, each with each of its algorithms.
func jobTests() []JobConfig {
	var all []JobConfig
	for _, test := range []string{AllToAll, AllGather, AllReduce, Barrier, Incast, Outcast, HaloExchange} {
		algorithms, _ := JobAlgorithms(test)
		if len(algorithms) == 0 {
			algorithms = []string{""}
		}
		for _, a := range algorithms {
			all = append(all, JobConfig{Test: test, Algorithm: a, Token: testToken, Window: 50 * time.Millisecond, Warmup: 10 * time.Millisecond})
		}
	}
	return all
}

// possible are those of jobTests with a number of ranks and a message size.
func possible(ranks, messageBytes int) []JobConfig {
	return slices.DeleteFunc(jobTests(), func(c JobConfig) bool { return sized(c, ranks, messageBytes).Validate() != nil })
}

func sized(c JobConfig, ranks, messageBytes int) JobConfig {
	c.Ranks, c.MessageBytes = ranks, messageBytes
	if c.Test == Barrier {
		c.MessageBytes = 0
	}
	return c
}

func (c JobConfig) words() string {
	return fmt.Sprintf("%s %s %d ranks %d B", c.Test, c.Algorithm, c.Ranks, c.MessageBytes)
}

// joinAll opens all ranks of a job on loopback.
func joinAll(t *testing.T, cfg JobConfig) ([]*Job, []netip.AddrPort) {
	t.Helper()
	var jobs []*Job
	var ranks []netip.AddrPort
	for i := range cfg.Ranks {
		c := cfg
		c.Rank, c.LocalRank = i, i
		j, err := JoinJob(c)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
		ranks = append(ranks, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), j.Port()))
	}
	return jobs, ranks
}

// runAll runs all ranks of a job.
func runAll(t *testing.T, cfg JobConfig) ([]JobReport, []error) {
	t.Helper()
	jobs, addresses := joinAll(t, cfg)
	reports, errs := make([]JobReport, len(jobs)), make([]error, len(jobs))
	var wait sync.WaitGroup
	for i, j := range jobs {
		wait.Go(func() { reports[i], errs[i] = j.Run(t.Context(), addresses) })
	}
	wait.Wait()
	return reports, errs
}

// connected gives the ranks of a job with all their connections, for tests that run
// operations one by one.
func connected(t *testing.T, cfg JobConfig) []*rank {
	t.Helper()
	jobs, addresses := joinAll(t, cfg)
	room(2 * cfg.Ranks)
	ranks, errs := make([]*rank, len(jobs)), make([]error, len(jobs))
	var wait, acceptors sync.WaitGroup
	for i, j := range jobs {
		higher := cfg.Ranks - 1 - i
		d := &acceptor{run: j.run, l: j.l, expected: higher, arrived: make(chan arrival, higher), seen: map[int]bool{}}
		acceptors.Go(d.open)
		wait.Go(func() {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			fds, err := j.connect(ctx, cancel, d, addresses)
			if errs[i] = err; err == nil {
				ranks[i] = newRank(j.run, j.cfg, fds)
			}
		})
	}
	wait.Wait()
	t.Cleanup(func() {
		for i, j := range jobs {
			j.Close()
			if ranks[i] != nil {
				_ = closeRanks(ranks[i].fds)
			}
		}
		acceptors.Wait()
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return ranks
}

// atOnce runs f for all ranks, each on a thread of its own.
func atOnce(t *testing.T, ranks []*rank, f func(*rank) error) {
	t.Helper()
	errs := make([]error, len(ranks))
	var wait sync.WaitGroup
	for i, k := range ranks {
		wait.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			errs[i] = f(k)
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// expected is what each rank must have, by the definition of the operation in the MPI
// standard (4.1, chapter 6) and nothing of the engine's. nil: that is not defined.
func expected(cfg JobConfig, in [][]byte) [][]byte {
	n, m := cfg.Ranks, cfg.MessageBytes
	out := make([][]byte, n)
	for r := range n {
		switch cfg.Test {
		case AllToAll:
			for from := range n {
				out[r] = append(out[r], in[from][r*m:(r+1)*m]...)
			}
		case AllGather:
			out[r] = bytes.Join(in, nil)
		case AllReduce:
			for e := 0; e < m; e += 4 {
				var sum uint32
				for from := range n {
					sum += binary.NativeEndian.Uint32(in[from][e:])
				}
				out[r] = binary.NativeEndian.AppendUint32(out[r], sum)
			}
		case Incast:
			if r == 0 {
				for from := 1; from < n; from++ {
					out[r] = append(out[r], in[from][from*m:(from+1)*m]...)
				}
			}
		case Outcast:
			if r > 0 {
				out[r] = in[0][r*m : (r+1)*m]
			}
		case HaloExchange:
			rows := map[int]int{2: 1, 3: 1, 4: 2, 8: 2}[n]
			columns := n / rows
			row, column := r/columns, r%columns
			north := (row+rows-1)%rows*columns + column
			south := (row+1)%rows*columns + column
			west := row*columns + (column+columns-1)%columns
			east := row*columns + (column+1)%columns
			// From the north comes what that rank has for its south, and so on.
			out[r] = bytes.Join([][]byte{in[north][m : 2*m], in[south][:m], in[west][3*m:], in[east][2*m : 3*m]}, nil)
		}
	}
	return out
}

// received is the part of a rank's output that an operation defines.
func received(k *rank) []byte {
	m := k.cfg.MessageBytes
	out := k.bufs[output][:k.script.sizes[output]]
	switch k.cfg.Test {
	case Incast:
		if k.cfg.Rank > 0 {
			return nil
		}
		return out[m:]
	case Outcast:
		if k.cfg.Rank == 0 {
			return nil
		}
		return out[k.cfg.Rank*m : (k.cfg.Rank+1)*m]
	case Barrier:
		return nil
	}
	return out
}

// Each rank receives exactly the bytes that the operation defines, whatever the others
// have, again and again; and the check that a job ends with accepts that and nothing else.
func TestJobContent(t *testing.T) {
	labtest.Slow(t)
	random := rand.NewChaCha8([32]byte{7})
	for _, n := range []int{2, 3, 4, 8} {
		for _, m := range []int{4, 1500, 200_000} {
			for _, cfg := range possible(n, m) {
				cfg = sized(cfg, n, m)
				ranks := connected(t, cfg)
				for range 2 {
					in := make([][]byte, n)
					for i, k := range ranks {
						in[i] = k.bufs[input][:k.script.sizes[input]]
						_, _ = random.Read(in[i]) // never fails
						clear(k.bufs[output])
					}
					atOnce(t, ranks, (*rank).operate)
					want := expected(cfg, in)
					for i, k := range ranks {
						if got := received(k); !bytes.Equal(got, want[i]) {
							t.Errorf("%s: rank %d has other bytes", cfg.words(), i)
						}
					}
				}
				for _, k := range ranks {
					fillInput(k.cfg, k.bufs[input][:k.script.sizes[input]])
				}
				atOnce(t, ranks, (*rank).operate)
				for i, k := range ranks {
					if err := checkOutput(k.cfg, k.bufs[output]); err != nil {
						t.Error(err)
					}
					got := received(k)
					if len(got) == 0 {
						continue
					}
					got[len(got)-1] ^= 0x40
					if checkOutput(k.cfg, k.bufs[output]) == nil {
						t.Errorf("%s: the check of rank %d accepts a wrong byte", cfg.words(), i)
					}
				}
			}
		}
	}
}

// What a rank sends is what the algorithm's definition gives as a closed form.
func TestJobSentBytes(t *testing.T) {
	log2 := map[int]int{2: 1, 3: 2, 4: 2, 6: 3, 8: 3, 16: 4}
	sides := map[int]int{2: 2, 3: 2, 4: 4, 6: 4, 8: 4, 16: 4}
	const m = 4 * 48 * 16 // any number of ranks divides its elements
	for n := range log2 {
		for _, cfg := range possible(n, m) {
			cfg = sized(cfg, n, m)
			var sum int64
			for r := range n {
				cfg.Rank = r
				var want int
				switch cfg.Test + " " + cfg.Algorithm {
				case "all_to_all pairwise", "all_to_all linear", "all_gather ring", "all_gather recursive_doubling":
					want = (n - 1) * m
				case "all_reduce ring":
					want = 2 * (n - 1) * m / n
				case "all_reduce recursive_doubling":
					want = log2[n] * m
				case "barrier dissemination", "barrier recursive_doubling":
					want = log2[n]
				case "incast ":
					want = map[bool]int{true: 0, false: m}[r == 0]
				case "outcast ":
					want = map[bool]int{true: (n - 1) * m, false: 0}[r == 0]
				case "halo_exchange ":
					want = sides[n] * m
				default:
					t.Fatalf("%s: no closed form", cfg.words())
				}
				got := JobSentBytes(cfg)
				if got != int64(want) {
					t.Errorf("%s: rank %d sends %d bytes, want %d", cfg.words(), r, got, want)
				}
				sum += got
				for _, st := range scriptOf(cfg).steps {
					for _, x := range st.recv {
						sum -= int64(x.n)
					}
				}
			}
			if sum != 0 {
				t.Errorf("%s: %d bytes more are sent than received", cfg.words(), sum)
			}
		}
	}
}

// Nobody leaves a barrier before all have come: after its steps each rank knows of all.
func TestBarrierKnowsAll(t *testing.T) {
	for n := 2; n <= 33; n++ {
		for _, cfg := range possible(n, 1) {
			if cfg.Test != Barrier {
				continue
			}
			cfg = sized(cfg, n, 0)
			knows, steps := make([]map[int]bool, n), make([][]step, n)
			for r := range n {
				cfg.Rank = r
				knows[r], steps[r] = map[int]bool{r: true}, scriptOf(cfg).steps
			}
			for i := range steps[0] {
				before := make([][]int, n)
				for r := range n {
					for k := range knows[r] {
						before[r] = append(before[r], k)
					}
				}
				for r := range n {
					for _, k := range before[steps[r][i].recv[0].peer] {
						knows[r][k] = true
					}
				}
			}
			for r := range n {
				if len(knows[r]) != n {
					t.Errorf("%s: rank %d knows of %d ranks", cfg.words(), r, len(knows[r]))
				}
			}
		}
	}
}

// A whole job counts the same operations at all ranks, and sends the closed form's bytes
// in each.
func TestJobOnLoopback(t *testing.T) {
	labtest.Slow(t)
	for _, cfg := range possible(4, 4096) {
		cfg = sized(cfg, 4, 4096)
		reports, errs := runAll(t, cfg)
		if err := errors.Join(errs...); err != nil {
			t.Errorf("%s: %v", cfg.words(), err)
			continue
		}
		root := reports[0]
		var slowest, sent, received int64
		for _, n := range root.SlowestIn {
			slowest += n
		}
		if root.Operations < 1 || root.Slowest == nil || root.Slowest.Count != root.Operations || slowest != root.Operations || root.WindowSeconds <= 0 {
			t.Errorf("%s: %d operations, slowest in %v, histogram %+v, %g s", cfg.words(), root.Operations, root.SlowestIn, root.Slowest, root.WindowSeconds)
		}
		for i, r := range reports {
			cfg.Rank = i
			sent, received = sent+r.SentBytes, received+r.ReceivedBytes
			if r.Operations != root.Operations || r.SentBytes != r.Operations*JobSentBytes(cfg) || r.AllowedCPUs < 1 || len(r.CPUs) == 0 {
				t.Errorf("%s: rank %d: %d operations, %d bytes, CPUs %v of %d", cfg.words(), i, r.Operations, r.SentBytes, r.CPUs, r.AllowedCPUs)
			}
			timed := !(cfg.Test == Incast && i > 0 || cfg.Test == Outcast && i == 0)
			if (r.Own != nil) != timed || timed && (r.Own.Count != r.Operations || r.Own.MaxNanoseconds > root.Slowest.MaxNanoseconds) {
				t.Errorf("%s: rank %d: own times %+v, slowest %+v", cfg.words(), i, r.Own, root.Slowest)
			}
		}
		if sent != received {
			t.Errorf("%s: %d bytes were sent and %d received", cfg.words(), sent, received)
		}
		if cfg.Test == Incast && (len(root.Flows) != 4 || root.Flows[0] != nil || root.Flows[3].Count != root.Operations) {
			t.Errorf("incast: flows %+v", root.Flows)
		}
	}
}

func TestJobRefusals(t *testing.T) {
	good := JobConfig{Test: AllReduce, Algorithm: Ring, Token: testToken, Ranks: 6, MessageBytes: 64, Window: time.Second}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*JobConfig){
		"requires a power of two of ranks (2, 4, 8 …), found 6: choose ring": func(c *JobConfig) { c.Algorithm = RecursiveDoubling },
		`has no algorithm "pairwise" (known: ring, recursive_doubling)`:      func(c *JobConfig) { c.Algorithm = Pairwise },
		`all_to_all has no algorithm "ring" (known: pairwise, linear)`:       func(c *JobConfig) { c.Test = AllToAll },
		"incast takes no algorithm":                                          func(c *JobConfig) { c.Test = Incast },
		"multiple of 4, found 6":                                             func(c *JobConfig) { c.MessageBytes = 6 },
		"a barrier has no messages":                                          func(c *JobConfig) { c.Test, c.Algorithm = Barrier, Dissemination },
		"a message of 0 bytes":                                               func(c *JobConfig) { c.MessageBytes = 0 },
		"1 ranks: 2 to 256":                                                  func(c *JobConfig) { c.Ranks = 1 },
		"rank 6 of 6":                                                        func(c *JobConfig) { c.Rank = 6 },
		`unknown test "tcp_rr"`:                                              func(c *JobConfig) { c.Test = TCPRR },
		"the token must be 16 bytes":                                         func(c *JobConfig) { c.Token = "abc" },
		"at most 67108864 bytes together":                                    func(c *JobConfig) { c.Ranks, c.MessageBytes = 256, 1<<20 },
		"it must be longer than nothing":                                     func(c *JobConfig) { c.Window = 0 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}

// A rank that leaves ends all others at once, and those that were connected to it name it.
func TestJobRankLeaves(t *testing.T) {
	cfg := sized(JobConfig{Test: AllToAll, Algorithm: Pairwise, Token: testToken, Window: time.Minute}, 4, 4096)
	jobs, addresses := joinAll(t, cfg)
	errs := make([]error, len(jobs))
	left, leave := context.WithCancelCause(t.Context())
	var wait sync.WaitGroup
	for i, j := range jobs {
		ctx := t.Context()
		if i == 2 {
			ctx = left
		}
		wait.Go(func() { _, errs[i] = j.Run(ctx, addresses) })
	}
	time.AfterFunc(200*time.Millisecond, func() { leave(errors.New("killed")) })
	began := time.Now()
	wait.Wait()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the ranks ended after %v", took)
	}
	named := false
	for i, err := range errs {
		var e *JobError
		switch {
		case i == 2 && (err == nil || err.Error() != "killed"):
			t.Errorf("the rank that left: %v", err)
		case i != 2 && !errors.As(err, &e):
			t.Errorf("rank %d: %v", i, err)
		case i != 2:
			named = named || slices.Contains(e.Closed, 2)
		}
	}
	if !named {
		t.Errorf("nobody says that rank 2 closed its connections: %v", errs)
	}
}

// Ranks that wait for one that does nothing give up within 5 s, and one of them names it.
func TestJobRankHangs(t *testing.T) {
	labtest.Slow(t)
	cfg := sized(JobConfig{Test: AllGather, Algorithm: Ring, Token: testToken, Window: time.Minute}, 3, 64)
	ranks := connected(t, cfg)
	errs := make([]error, 2)
	began := time.Now()
	var wait sync.WaitGroup
	for i, k := range ranks[:2] {
		wait.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			_, errs[i] = k.repeat()
		})
	}
	wait.Wait()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the ranks ended after %v", took)
	}
	named := false
	for i, err := range errs {
		var e *JobError
		if !errors.As(err, &e) || len(e.Unacknowledged) > 0 {
			t.Errorf("rank %d: %v", i, err)
			continue
		}
		named = named || slices.Contains(e.WaitsFor, 2)
	}
	if !named {
		t.Errorf("nobody waits for rank 2: %v", errs)
	}
}

// A stranger who comes first is refused and counted, and the job is measured.
func TestJobRefusesStrangers(t *testing.T) {
	cfg := sized(JobConfig{Test: Barrier, Algorithm: Dissemination, Token: testToken, Window: 20 * time.Millisecond}, 2, 0)
	jobs, addresses := joinAll(t, cfg)
	for _, a := range addresses {
		c, err := net.Dial("tcp", a.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(make([]byte, greetingBytes)); err != nil {
			t.Fatal(err)
		}
	}
	reports, errs := make([]JobReport, 2), make([]error, 2)
	var wait sync.WaitGroup
	for i, j := range jobs {
		wait.Go(func() { reports[i], errs[i] = j.Run(t.Context(), addresses) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, r := range reports {
		if r.Strangers != 1 || r.Operations < 1 {
			t.Errorf("rank %d: %d strangers, %d operations", i, r.Strangers, r.Operations)
		}
	}
}

// Operations and synchronisations allocate nothing.
func TestNoAllocationInJobs(t *testing.T) {
	for _, cfg := range possible(4, 1500) {
		cfg = sized(cfg, 4, 1500)
		ranks := connected(t, cfg)
		const rounds = 200
		var before, after runtime.MemStats
		atOnce(t, ranks, (*rank).operate)
		runtime.ReadMemStats(&before)
		atOnce(t, ranks, func(k *rank) error {
			for i := range rounds {
				if err := k.operate(); err != nil {
					return err
				}
				if _, err := k.synchronise(agreed{}, uint32(i)); err != nil {
					return err
				}
			}
			return nil
		})
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > rounds {
			t.Errorf("%s: %d allocations in %d operations of 4 ranks", cfg.words(), n, rounds)
		}
	}
}

// All ranks agree on the largest of what they say, whatever their number.
func TestSynchronise(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8} {
		ranks := connected(t, sized(JobConfig{Test: Barrier, Algorithm: Dissemination, Token: testToken, Window: time.Second}, n, 0))
		got := make([]agreed, n)
		atOnce(t, ranks, func(k *rank) (err error) {
			mine := agreed{slowest: k.cfg.Rank, took: int64(100 * (k.cfg.Rank % 3))}
			if k.cfg.Rank == 0 {
				mine.next = measuring
			}
			got[k.cfg.Rank], err = k.synchronise(mine, 7)
			return err
		})
		want := agreed{next: measuring, slowest: min(2, n-1), took: int64(100 * min(2, n-1))}
		for i, a := range got {
			if a != want {
				t.Errorf("%d ranks: rank %d has %+v, want %+v", n, i, a, want)
			}
		}
	}
}

func TestChooseRankCPU(t *testing.T) {
	allowed := []int{1, 4, 6}
	for _, c := range []struct {
		placement string
		want      [][]int
	}{
		{CPUsFree, [][]int{nil, nil}}, {CPUsSame, [][]int{{6}, {6}}}, {CPUsApart, [][]int{{6}, {4}, {1}, {6}}},
	} {
		for local, want := range c.want {
			got, err := chooseRankCPU(c.placement, local, allowed)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%q %d: %v %v, want %v", c.placement, local, got, err, want)
			}
		}
	}
	if _, err := chooseRankCPU("near", 0, allowed); err == nil {
		t.Error("an unknown placement is accepted")
	}
}
