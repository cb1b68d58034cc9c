//go:build linux

package agent

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// strangersShown is how many addresses of strangers a doubt names.
const strangersShown = 3

// strangersAt says which connections at the TCP port of a tool are not from its peer: a
// published tool may serve whoever comes. It sees those that are open, and those that the
// tool has closed less than a minute ago (TIME_WAIT). Where the peer is not known, all are
// expected to come from one address. earlier are connections of the samples before, which
// are left out: a service has one port for all.
func (s *server) strangersAt(port uint16, peer string, earlier []netip.AddrPort) []string {
	if port == 0 {
		return nil
	}
	all, err := remotesAt(s.roots.Proc, port)
	if err != nil {
		return []string{fmt.Sprintf("whether strangers connected to the server's port %d is not known: %v", port, err)}
	}
	known := map[netip.AddrPort]bool{}
	for _, one := range earlier {
		known[one] = true
	}
	var remotes []netip.Addr
	for _, one := range all {
		if !known[one] {
			remotes = append(remotes, one.Addr())
		}
	}
	if expected, err := netip.ParseAddr(peer); err == nil {
		remotes = slices.DeleteFunc(remotes, func(a netip.Addr) bool { return a == expected.Unmap() })
	} else if len(distinct(remotes)) == 1 {
		return nil
	}
	addresses := distinct(remotes)
	if len(addresses) == 0 {
		return nil
	}
	var shown []string
	for _, a := range addresses[:min(len(addresses), strangersShown)] {
		shown = append(shown, a.String())
	}
	if len(addresses) > strangersShown {
		shown = append(shown, "…")
	}
	whom := "others than the client"
	if peer == "" {
		whom = "more than one address"
	}
	return []string{StrangersDoubt + fmt.Sprintf("%d connections from %s (%s) were at the server's port %d when the sample ended: its figures may be off, unless the network translates the client's address to that; find what connects, or measure where it does not",
		len(remotes), whom, strings.Join(shown, ", "), port)}
}

func distinct(all []netip.Addr) []netip.Addr {
	all = slices.SortedFunc(slices.Values(all), netip.Addr.Compare)
	return slices.Compact(all)
}

// remotesAt gives the address and port of the other end of each connection of a TCP port, after
// /proc/net/tcp and tcp6 (proc_pid_net(5)).
func remotesAt(proc string, port uint16) ([]netip.AddrPort, error) {
	var all []netip.AddrPort
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join(proc, "self/net", name))
		if errors.Is(err, fs.ErrNotExist) && name == "tcp6" {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			// sl local_address rem_address st …
			fields := strings.Fields(lines.Text())
			if len(fields) < 4 || fields[3] == "0A" { // TCP_LISTEN
				continue
			}
			local, ok1 := procAddress(fields[1])
			remote, ok2 := procAddress(fields[2])
			if ok1 && ok2 && local.Port() == port {
				all = append(all, remote)
			}
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// procAddress reads "0100007F:1451": the address as 32-bit words in the byte order of the
// machine, which is little-endian wherever cnibench is built for.
func procAddress(s string) (netip.AddrPort, bool) {
	address, port, ok := strings.Cut(s, ":")
	raw, err1 := hex.DecodeString(address)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if !ok || err1 != nil || err2 != nil || len(raw) != 4 && len(raw) != 16 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	a, _ := netip.AddrFromSlice(raw) // 4 or 16 bytes always are one
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), true
}

// sourceOf is the address that this place sends to a server from; "" where there is no way
// to it. Nothing is sent.
func sourceOf(server string) string {
	c, err := net.Dial("udp", server)
	if err != nil {
		return ""
	}
	defer c.Close()
	local, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return ""
	}
	return local.Addr().Unmap().WithZone("").String()
}
