//go:build linux

package traffic

// loop is what a rank counts while it repeats the operation.
type loop struct {
	own, slowest *recorder
	flows        []*recorder // of the root of incast, by transfer
	slowestIn    []int64
	operations   int64
	sent, got    int64
	// opened is when the first operation began, begin when the first measured one did,
	// end when the last one was through; 0: not yet.
	opened, begin, end int64
}

// repeat runs the operation until rank 0 has measured for the window, with a
// synchronisation of all ranks before each and after the last.
func (k *rank) repeat() (JobReport, error) {
	l := loop{own: newRecorder(), slowest: newRecorder(), slowestIn: make([]int64, k.cfg.Ranks)}
	for range k.flowEnds {
		l.flows = append(l.flows, newRecorder())
	}
	var number uint32
	state, err := k.synchronise(agreed{next: k.decide(&l, nanotime())}, number)
	for err == nil && state.next != through {
		now := state.next
		sent, got := k.sentBytes, k.gotBytes
		begin := nanotime()
		if err = k.operate(); err != nil {
			break
		}
		end := nanotime()
		if now == measuring {
			if l.begin == 0 {
				l.begin = begin
			}
			l.end = end
			l.operations++
			l.sent += k.sentBytes - sent
			l.got += k.gotBytes - got
		}
		mine := k.timed(&l, now, begin, end)
		mine.next = k.decide(&l, end)
		number++
		if state, err = k.synchronise(mine, number); err == nil && now == measuring && k.cfg.Rank == 0 {
			l.slowest.record(state.took)
			l.slowestIn[state.slowest]++
		}
		if k.stopped.Load() && err == nil {
			err = errJobStopped
		}
	}
	if err != nil {
		return JobReport{}, err
	}
	if err := checkOutput(k.cfg, k.bufs[output][:k.script.sizes[output]]); err != nil {
		return JobReport{}, err
	}
	return l.report(k.cfg)
}

// decide is what rank 0 has all ranks do next. At least one operation is measured.
func (k *rank) decide(l *loop, now int64) phase {
	if k.cfg.Rank != 0 {
		return undecided
	}
	if l.opened == 0 {
		l.opened = now
	}
	switch {
	case now < l.opened+int64(k.cfg.Warmup):
		return warming
	case l.operations == 0 || now < l.begin+int64(k.cfg.Window):
		return measuring
	}
	return through
}

// timed records how long the rank's part took, and gives it for the synchronisation. A
// part without an end that its rank sees counts nothing: senders of incast and the root
// of outcast are through when the kernel has the bytes. The root of incast reports the
// rank whose flow was the last to end.
func (k *rank) timed(l *loop, now phase, begin, end int64) agreed {
	mine := agreed{slowest: k.cfg.Rank, took: end - begin}
	switch {
	case k.cfg.Test == Incast && k.cfg.Rank > 0, k.cfg.Test == Outcast && k.cfg.Rank == 0:
		mine.took = 0
		return mine
	case k.flowEnds != nil:
		mine.took = 0
		for i, at := range k.flowEnds[:k.cfg.Ranks-1] {
			if took := at - begin; took > mine.took {
				mine.took, mine.slowest = took, i+1 // transfer i is that of rank i+1
			}
			if now == measuring {
				l.flows[i].record(at - begin)
			}
		}
	}
	if now == measuring {
		l.own.record(mine.took)
	}
	return mine
}

func (l *loop) report(cfg JobConfig) (JobReport, error) {
	r := JobReport{Operations: l.operations, WindowSeconds: float64(l.end-l.begin) / 1e9, SentBytes: l.sent, ReceivedBytes: l.got}
	var err error
	if r.Own, err = merge([]*recorder{l.own}); err != nil {
		return r, err
	}
	if cfg.Rank == 0 {
		r.SlowestIn = l.slowestIn
		if r.Slowest, err = merge([]*recorder{l.slowest}); err != nil {
			return r, err
		}
	}
	if len(l.flows) > 0 {
		r.Flows = make([]*Histogram, cfg.Ranks)
		for i, f := range l.flows {
			if r.Flows[i+1], err = merge([]*recorder{f}); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}
