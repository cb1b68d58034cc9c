//go:build linux

package traffic

import (
	"encoding/binary"
	"fmt"
)

// What ranks send is known to all of them, so that each can check at the end that it has
// what the operation defines.

// contentByte is byte k of the block that a rank has for a target: another rank, or a side.
func contentByte(rank, target, k int) byte {
	x := uint32(rank+1)*0x9e3779b1 ^ uint32(target+1)*0x85ebca6b ^ uint32(k+1)*0xc2b2ae35
	x ^= x >> 15
	x *= 0x2c1b3c6d
	return byte(x >> 24)
}

func fillBlock(block []byte, rank, target int) {
	for k := range block {
		block[k] = contentByte(rank, target, k)
	}
}

// fillInput gives a rank what it has.
func fillInput(cfg JobConfig, in []byte) {
	m := cfg.MessageBytes
	switch cfg.Test {
	case AllGather:
		fillBlock(in, cfg.Rank, 0)
	case AllReduce:
		for e := range m / reduceBytes {
			binary.NativeEndian.PutUint32(in[e*reduceBytes:], addend(cfg.Rank, e))
		}
	case AllToAll, Incast, Outcast, HaloExchange:
		for target := range len(in) / m {
			fillBlock(in[target*m:(target+1)*m], cfg.Rank, target)
		}
	}
}

// addend is what a rank adds to element e of all_reduce.
func addend(rank, e int) uint32 { return uint32(rank+1)*0x01000193 + uint32(e)*0x9e3779b1 }

// checkOutput compares what a rank has at the end with what the operation defines.
func checkOutput(cfg JobConfig, out []byte) error {
	m := cfg.MessageBytes
	block := func(at, rank, target int) error {
		for k, got := range out[at*m : (at+1)*m] {
			if want := contentByte(rank, target, k); got != want {
				return fmt.Errorf("%s: byte %d of what rank %d has of rank %d is %#x, and %#x was sent", cfg.Test, k, cfg.Rank, rank, got, want)
			}
		}
		return nil
	}
	switch cfg.Test {
	case AllToAll:
		return eachBlock(0, cfg.Ranks, func(from int) error { return block(from, from, cfg.Rank) })
	case AllGather:
		return eachBlock(0, cfg.Ranks, func(from int) error { return block(from, from, 0) })
	case AllReduce:
		return checkSum(cfg, out)
	case Incast:
		if cfg.Rank == 0 {
			return eachBlock(1, cfg.Ranks, func(from int) error { return block(from, from, from) })
		}
	case Outcast:
		if cfg.Rank > 0 {
			return block(cfg.Rank, 0, cfg.Rank)
		}
	case HaloExchange:
		sides := neighbours(cfg.Rank, cfg.Ranks)
		return eachBlock(0, haloSides, func(side int) error { return block(side, sides[side], side^1) })
	}
	return nil
}

func eachBlock(from, to int, check func(int) error) error {
	for i := from; i < to; i++ {
		if err := check(i); err != nil {
			return err
		}
	}
	return nil
}

func checkSum(cfg JobConfig, out []byte) error {
	for e := range cfg.MessageBytes / reduceBytes {
		var want uint32
		for rank := range cfg.Ranks {
			want += addend(rank, e)
		}
		if got := binary.NativeEndian.Uint32(out[e*reduceBytes:]); got != want {
			return fmt.Errorf("all_reduce: element %d of rank %d is %d, and the sum is %d", e, cfg.Rank, got, want)
		}
	}
	return nil
}
