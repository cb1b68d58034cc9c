// Package histogram reads the histograms of round trips that records hold, lays those of a
// cell over each other, and gives the percentiles of any weighting of their blocks.
package histogram

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/cnibench/cnibench/internal/result"
)

// Packed is a histogram as it was recorded, out of its base64. One that cannot be read is
// found when it is merged.
type Packed struct{ data []byte } // nil: it cannot be read

// Pack keeps what a record has of a histogram; nil where it has none.
func Pack(h *result.Histogram) *Packed {
	if h == nil {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(h.HDRBase64)
	if err != nil || h.Unit != "nanoseconds" {
		return &Packed{}
	}
	return &Packed{data}
}

// Reader decodes and merges HDR histograms one after the other (HdrHistogram's "V2
// compressed" format, as its AbstractHistogram.java writes it). The library
// decodes them as well, and builds a histogram each time; here they are only
// read, tens of thousands of them, so that everything is used again.
type Reader struct {
	source  bytes.Reader
	zlib    io.ReadCloser
	content bytes.Buffer
	flat    []bucket // of all histograms of a cell
}

const (
	// The low bits of the second digit are the word size, which is always 1.
	cookieMask       = ^uint32(0xf0)
	compressedCookie = 0x1c849304
	contentCookie    = 0x1c849303
	headerBytes      = 40
	// maxContent bounds what a broken histogram can inflate to.
	maxContent = 16 << 20
)

var errHistogram = errors.New("not an HDR histogram in V2 compressed encoding")

// buckets gives the buckets of a histogram that have values, ascending.
func (d *Reader) buckets(h *Packed, into []bucket) ([]bucket, error) {
	if err := d.inflate(h.data); err != nil {
		return nil, err
	}
	c := d.content.Bytes()
	if len(c) < headerBytes || binary.BigEndian.Uint32(c)&cookieMask != contentCookie&cookieMask {
		return nil, errHistogram
	}
	payload := c[headerBytes:]
	if int(binary.BigEndian.Uint32(c[4:])) != len(payload) {
		return nil, errHistogram
	}
	digits, lowest := int32(binary.BigEndian.Uint32(c[12:])), int64(binary.BigEndian.Uint64(c[16:]))
	if digits < 0 || digits > 5 || lowest < 0 {
		return nil, errHistogram
	}
	return counts(payload, scaleOf(digits, lowest), into)
}

// inflate leaves the content of the envelope in d.content.
func (d *Reader) inflate(raw []byte) error {
	if len(raw) < 8 || binary.BigEndian.Uint32(raw)&cookieMask != compressedCookie&cookieMask {
		return errHistogram
	}
	length := binary.BigEndian.Uint32(raw[4:])
	if int64(length) > int64(len(raw)-8) {
		return errHistogram
	}
	d.source.Reset(raw[8 : 8+length])
	var err error
	if d.zlib == nil {
		d.zlib, err = zlib.NewReader(&d.source)
	} else {
		err = d.zlib.(zlib.Resetter).Reset(&d.source, nil) // zlib.NewReader says that it is one
	}
	if err != nil {
		d.zlib = nil
		return fmt.Errorf("%w: %w", errHistogram, err)
	}
	d.content.Reset()
	if n, err := io.Copy(&d.content, io.LimitReader(d.zlib, maxContent+1)); err != nil || n > maxContent {
		return fmt.Errorf("%w: %d bytes inflated: %w", errHistogram, n, err)
	}
	return nil
}

// hdrScale turns the index of a count into values: 2^half counts for each
// doubling of the value, and as many below the first.
type hdrScale struct{ unit, half int }

func scaleOf(digits int32, lowest int64) hdrScale {
	fine := uint64(2 * math.Pow10(int(digits))) // values up to it have a resolution of one unit
	return hdrScale{unit: bits.Len64(uint64(max(lowest, 1))) - 1, half: max(bits.Len64(fine-1), 1) - 1}
}

// highest is the largest value that is counted at an index: what HDR histograms
// call the value of a percentile.
func (s hdrScale) highest(index int64) (int64, bool) {
	doubling := index>>s.half - 1
	within := index&(1<<s.half-1) + 1<<s.half
	if doubling < 0 {
		doubling, within = 0, within-1<<s.half
	}
	shift := int(doubling) + s.unit
	if doubling > 62 || shift+s.half+1 > 62 {
		return 0, false
	}
	return (within+1)<<shift - 1, true
}

// counts reads the payload: a number is a count, a negative one says how many
// counts of 0 come next.
func counts(payload []byte, scale hdrScale, into []bucket) ([]bucket, error) {
	var index int64
	for len(payload) > 0 {
		n, rest, ok := zigZag(payload)
		if !ok {
			return nil, errHistogram
		}
		payload = rest
		if n < 0 {
			if n == math.MinInt64 || index > math.MaxInt32+n { // no histogram has so many counts
				return nil, errHistogram
			}
			index -= n
			continue
		}
		if n > 0 {
			value, ok := scale.highest(index)
			if !ok {
				return nil, errHistogram
			}
			into = append(into, bucket{value, n})
		}
		index++
	}
	return into, nil
}

// zigZag reads a ZigZag LEB128-64b9B number: seven bits a byte, the lowest
// first, and all eight of the ninth byte.
func zigZag(p []byte) (n int64, rest []byte, ok bool) {
	var v uint64
	for i, b := range p {
		if i == 8 {
			v |= uint64(b) << 56
			return int64(v>>1) ^ -int64(v&1), p[9:], true
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return int64(v>>1) ^ -int64(v&1), p[i+1:], true
		}
	}
	return 0, nil, false
}
