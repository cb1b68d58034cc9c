package netns

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Passed is what passed a device in one direction. A segment is one packet, however long.
type Passed struct{ Bytes, Packets uint64 }

// Mean is the mean length in bytes of the packets between two readings; 0 where there
// were none.
func Mean(before, after Passed) uint64 {
	if after.Packets <= before.Packets {
		return 0
	}
	return (after.Bytes - before.Bytes) / (after.Packets - before.Packets)
}

// Packets is how many packets a device of a namespace has received and sent, as
// the kernel hands them on: a segment of up to 64 KiB is one.
func Packets(n NS, device string) (uint64, error) {
	c, err := counts(n, device)
	return c[1] + c[9], err
}

// Sent is what a device of a namespace has sent.
func Sent(n NS, device string) (Passed, error) {
	c, err := counts(n, device)
	return Passed{Bytes: c[8], Packets: c[9]}, err
}

// Received is what a device of a namespace has received.
func Received(n NS, device string) (Passed, error) {
	c, err := counts(n, device)
	return Passed{Bytes: c[0], Packets: c[1]}, err
}

// counts are the columns of a device in /proc/net/dev: from 0 on what it received, from 8
// on what it sent, each bytes first, then packets.
func counts(n NS, device string) ([10]uint64, error) {
	var text []byte
	err := Do(n, func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/dev")
		return err
	})
	var c [10]uint64
	if err == nil {
		if c, err = parseCounts(string(text), device); err == nil {
			return c, nil
		}
	}
	return c, fmt.Errorf("packets of %s in %s: %w", device, n.Name, err)
}

func parseCounts(text, device string) (c [10]uint64, err error) {
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) != device {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) < len(c) {
			return c, fmt.Errorf("/proc/net/dev: %q", line)
		}
		for i := range c {
			if c[i], err = strconv.ParseUint(fields[i], 10, 64); err != nil {
				return c, err
			}
		}
		return c, nil
	}
	return c, errors.New("there is no such device")
}
