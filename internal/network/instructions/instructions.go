// Package instructions has how many instructions each network takes per packet, as
// docs/instructions.md lists them.
package instructions

import (
	_ "embed"
	"strconv"
	"strings"
)

// counts are the counts of docs/instructions.md: instructions per datagram
// and per transaction, counted by emulation. A count that varied by 2 % or more from
// sample to sample is left out.
//
//go:embed instructions.csv
var counts string

// Of is how many instructions a workload of 64-byte messages takes per
// packet or transaction on a network, both ends together ("udp_stream" or "tcp_rr",
// "inter-host" or "intra-host"). ok is false where that was not counted.
func Of(network, workload, placement string) (perWork float64, ok bool) {
	header, rows, _ := strings.Cut(counts, "\n")
	column := -1
	for i, name := range strings.Split(header, ",") {
		if name == workload+" "+placement {
			column = i
		}
	}
	for row := range strings.Lines(rows) {
		fields := strings.Split(strings.TrimSpace(row), ",")
		if fields[0] != network || column < 0 || column >= len(fields) {
			continue
		}
		n, err := strconv.ParseFloat(fields[column], 64)
		return n, err == nil
	}
	return 0, false
}
