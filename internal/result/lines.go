package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
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

// maxLine bounds one line, with its end, in bytes. Records have a few KiB, those with a
// histogram and a series of a long window some hundred.
const maxLine = 16 << 20

// longLineError is a line that is longer than maxLine.
type longLineError struct{ line int }

func (e *longLineError) Error() string {
	return fmt.Sprintf("not a record: the line is longer than %d MiB", maxLine>>20)
}

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
	if long := (*longLineError)(nil); errors.As(readErr, &long) {
		return 0, fmt.Errorf("%s:%d: %w", name, long.line, readErr)
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
			if long := slices.IndexFunc(b.lines, func(l []byte) bool { return len(l) > maxLine }); long >= 0 {
				return nil, &longLineError{first + long}
			}
			first += len(b.lines)
			if !give(b) {
				return nil, nil
			}
		}
		if len(rest) > maxLine {
			return nil, &longLineError{first}
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
