//go:build linux

package traffic

import "time"

// exchanger is the asking end of transactions over TCP.
type exchanger interface {
	// exchange makes transactions until a time and gives their number and its end.
	exchange(now, until int64, record bool) (n, end int64, err error)
	// marked is the transaction that ends a part of a slice, at both ends.
	marked(mark byte) error
	thread() *sliceWorker
}

// exchangeSlice is one slice of transactions: the lead-in, which nobody counts, and the
// counted part, each with the mark that ends it.
func exchangeSlice(a exchanger, leadIn, length time.Duration, out *Slice) error {
	if now := nanotime(); leadIn > 0 {
		if _, _, err := a.exchange(now, now+int64(leadIn), false); err != nil {
			return err
		}
	}
	if err := a.marked(leadInMark); err != nil {
		return err
	}
	if err := a.thread().gate.wait(); err != nil {
		return err
	}
	a.thread().start()
	begin := nanotime()
	n, end, err := a.exchange(begin, begin+int64(length), true)
	if err != nil {
		return err
	}
	out.ClientCPU = a.thread().spent()
	out.Begin, out.End, out.Transactions = time.Duration(begin), time.Duration(end), n
	return a.marked(countedMark)
}
