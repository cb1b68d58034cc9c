package netns

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Packets is how many packets a device of a namespace has received and sent, as
// the kernel hands them on: a segment of up to 64 KiB is one.
func Packets(n NS, device string) (uint64, error) {
	var text []byte
	err := Do(n, func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/dev")
		return err
	})
	if err == nil {
		var packets uint64
		if packets, err = parsePackets(string(text), device); err == nil {
			return packets, nil
		}
	}
	return 0, fmt.Errorf("packets of %s in %s: %w", device, n.Name, err)
}

// parsePackets reads /proc/net/dev, of which the columns 2 and 10 are packets.
func parsePackets(text, device string) (uint64, error) {
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) != device {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) < 10 {
			return 0, fmt.Errorf("/proc/net/dev: %q", line)
		}
		received, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return 0, err
		}
		sent, err := strconv.ParseUint(fields[9], 10, 64)
		return received + sent, err
	}
	return 0, errors.New("there is no such device")
}
