//go:build linux

package agent

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// maxRoutes bounds what is reported: a node may have a route for each other one.
const maxRoutes = 50

// routes reads the IPv4 routes of the main table, /proc/net/route
// (proc_pid_net(5)): addresses in hexadecimal, in the machine's byte order.
func routes(path string) ([]string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a kernel without IPv4
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []string
	lines := bufio.NewScanner(f)
	lines.Scan() // the head: Iface Destination Gateway Flags RefCnt Use Metric Mask …
	for lines.Scan() && len(all) < maxRoutes {
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 {
			return nil, fmt.Errorf("%s: %q is no route", path, lines.Text())
		}
		var numbers [3]uint32
		for i, field := range []string{fields[1], fields[2], fields[7]} {
			n, err := strconv.ParseUint(field, 16, 32)
			if err != nil {
				return nil, fmt.Errorf("%s: %q is no route", path, lines.Text())
			}
			numbers[i] = uint32(n)
		}
		route := fmt.Sprintf("%s/%d", address(numbers[0]), bits.OnesCount32(numbers[2]))
		if numbers[1] != 0 {
			route += " via " + address(numbers[1])
		}
		all = append(all, route+" dev "+alike(fields[0]))
	}
	return all, lines.Err()
}

func address(n uint32) string {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b).String()
}
