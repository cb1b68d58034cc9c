package result

import (
	"bytes"
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

// split reads whole lines and gives them away in batches, until the end or until
// nobody wants them. rest is what follows the last whole line.
func split(r io.Reader, give func(*batch) bool) (rest []byte, err error) {
	first := 1
	for {
		// What is left of the last read comes first; a line longer than a batch
		// makes the buffer grow until it is whole.
		data := make([]byte, len(rest), max(batchBytes, 2*len(rest)))
		copy(data, rest)
		n, err := io.ReadFull(r, data[len(rest):cap(data)])
		data = data[:len(rest)+n]
		end := bytes.LastIndexByte(data, '\n') + 1
		rest = data[end:]
		if end > 0 {
			b := &batch{first: first, lines: bytes.SplitAfter(data[:end], []byte{'\n'}), decoded: make(chan struct{})}
			b.lines = b.lines[:len(b.lines)-1] // after the last end of a line comes nothing
			first += len(b.lines)
			if !give(b) {
				return nil, nil
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return rest, nil
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
