package result

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// batch is some lines of samples.jsonl on their way through a decoder.
type batch struct {
	first   int // number of the first line, from 1
	lines   [][]byte
	samples []Sample
	err     error // of the line after samples
	decoded chan struct{}
}

// batchBytes is about how many bytes a batch has.
const batchBytes = 256 << 10

// eachSample hands all whole records to f in their order; end is where the last
// one ends. Only the last line may be torn: a killed writer leaves no other.
// Decoding takes nearly all of the time, so that all processors decode.
func eachSample(r io.Reader, name string, f func(*Sample)) (end int64, err error) {
	work, inOrder, stop := make(chan *batch), make(chan *batch, 2*runtime.GOMAXPROCS(0)), make(chan struct{})
	var decoders sync.WaitGroup
	defer decoders.Wait()
	defer close(stop)
	for range runtime.GOMAXPROCS(0) {
		decoders.Go(func() {
			d := newDecoder()
			for b := range work {
				b.decode(d)
			}
		})
	}
	var rest []byte // after the last end of a line
	var readErr error
	decoders.Go(func() {
		defer close(inOrder)
		defer close(work)
		rest, readErr = split(r, func(b *batch) bool {
			select {
			case inOrder <- b:
				work <- b // the decoders go on until work is closed
				return true
			case <-stop:
				return false
			}
		})
	})
	for b := range inOrder {
		<-b.decoded
		for i := range b.samples {
			f(&b.samples[i])
			end += int64(len(b.lines[i]))
		}
		if b.err == nil {
			continue
		}
		bad := len(b.samples)
		if bad == len(b.lines)-1 && !json.Valid(b.lines[bad]) {
			if _, more := <-inOrder; !more && len(rest) == 0 && readErr == nil {
				return end, nil // torn, in a block that a crash left half on the disk
			}
		}
		return 0, fmt.Errorf("%s:%d: %w", name, b.first+bad, b.err)
	}
	if readErr != nil {
		return 0, fmt.Errorf("%s: %w", name, readErr)
	}
	return end, nil // rest is torn, or nothing
}

// split reads lines and gives them away in batches, until the end or until
// nobody wants them. rest is what follows the last whole line.
func split(r io.Reader, give func(*batch) bool) (rest []byte, err error) {
	br := bufio.NewReaderSize(r, 1<<20)
	b, size := &batch{first: 1, decoded: make(chan struct{})}, 0
	for {
		line, err := br.ReadBytes('\n')
		if err == nil {
			b.lines, size = append(b.lines, line), size+len(line)
		}
		if (err != nil && len(b.lines) > 0) || size >= batchBytes {
			if !give(b) {
				return nil, nil
			}
			b, size = &batch{first: b.first + len(b.lines), decoded: make(chan struct{})}, 0
		}
		if errors.Is(err, io.EOF) {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// decode parses the batch's lines up to the first bad one.
func (b *batch) decode(d *decoder) {
	defer close(b.decoded)
	b.samples = make([]Sample, 0, len(b.lines))
	for _, line := range b.lines {
		s, err := d.sample(line)
		if err != nil {
			b.err = err
			return
		}
		b.samples = append(b.samples, s)
	}
}
