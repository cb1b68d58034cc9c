package workload

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// MPINetPIPE is NetPIPE over MPI: ping-pong of messages of one size between two ranks.
//
// NetPIPE 3.7 measures each size in three trials, chooses the number of messages so that a
// trial takes about 0.1 s, and reports the fastest trial. Its Mbps are 2^20 bits per second.
func MPINetPIPE() MPI {
	return MPI{
		spec: mpiSpec(Spec{
			Name:                "mpi_netpipe",
			Summary:             "NetPIPE over a real MPI: messages back and forth between two ranks",
			Primary:             "message_time_seconds",
			Factors:             []string{"message_bytes"},
			DefaultMessageBytes: 1024,
			ExactRanks:          2,
			Tests:               mpiNames(),
			Needs: slices.Concat(
				openMPITools(), []Tool{{Name: "NPopenmpi", Package: "netpipe-openmpi", Version: []string{"dpkg-query", "-W", "netpipe-openmpi"}, MPI: openMPIName}},
				mpichTools(), []Tool{{Name: "NPmpich2", Package: "netpipe-mpich2", Version: []string{"dpkg-query", "-W", "netpipe-mpich2"}, MPI: mpichName}},
			),
		}),
		rank: func(p Params) ([]string, string, error) {
			if p.Cell.MessageBytes < 1 {
				return nil, "", errors.New("mpi_netpipe needs a message size")
			}
			size := strconv.Itoa(p.Cell.MessageBytes)
			program := "NPopenmpi"
			if p.Cell.Test == mpichName {
				program = "NPmpich2"
			}
			return []string{program, "-l", size, "-u", size, "-p", "0", "-o", "/dev/null"}, "Now starting the main loop", nil
		},
		usual:   func(Params) time.Duration { return time.Second },
		longest: func(Params) time.Duration { return 60 * time.Second },
		parse:   parseNetPIPE,
		sent:    netPIPESent,

		onStderr: true,
	}
}

// netPIPETrials is how often NetPIPE 3.7 measures one size (TRIALS of netpipe.h).
const netPIPETrials = 3

// netPIPESent is what the lines of a run report: each rank sends each message of each trial
// once.
func netPIPESent(p Params, launcher Output) (mpiBytes, error) {
	m, err := parseNetPIPE(p, launcher)
	if err != nil {
		return nil, err
	}
	bytes := m.Metrics["messages"] * netPIPETrials * float64(p.Cell.MessageBytes)
	return mpiBytes{{0, 1}: bytes, {1, 0}: bytes}, nil
}

// netPIPELine matches what NetPIPE prints of one size (netpipe.c): number, bytes of a
// message, messages of a trial, rate and time of a message one way, with their units.
var netPIPELine = regexp.MustCompile(`(?m)^ *\d+: +(\d{1,9}) bytes +(\d{1,9}) times --> +([0-9.]+) (\S+) in +([0-9.]+) (\S+) *\r?$`)

// netPIPEMegabit is what NetPIPE calls one Mbit, bits.
const netPIPEMegabit = 1 << 20

// parseNetPIPE reads the one line of the size that was asked for.
func parseNetPIPE(p Params, launcher Output) (Measurement, error) {
	found := netPIPELine.FindAllStringSubmatch(launcher.Stderr, -1)
	if len(found) != 1 {
		return Measurement{}, fmt.Errorf("it has %d lines of message sizes where 1 was asked for", len(found))
	}
	line := found[0]
	if line[1] != strconv.Itoa(p.Cell.MessageBytes) {
		return Measurement{}, fmt.Errorf("messages of %s bytes where %d were asked for", line[1], p.Cell.MessageBytes)
	}
	if line[4] != "Mbps" || line[6] != "usec" {
		return Measurement{}, fmt.Errorf("unknown units %q and %q where Mbps and usec were expected", clip(line[4]), clip(line[6]))
	}
	times, err1 := number(line[2])
	rate, err2 := number(line[3])
	micros, err3 := number(line[5])
	if err := errors.Join(err1, err2, err3); err != nil {
		return Measurement{}, err
	}
	if micros <= 0 || times <= 0 {
		return Measurement{}, fmt.Errorf("%g messages in %g µs each", times, micros)
	}
	one := micros / 1e6
	bitsPerSecond := float64(8*p.Cell.MessageBytes) / one
	// Both are rounded to two digits after the point.
	if off := math.Abs(rate*netPIPEMegabit - bitsPerSecond); off > 0.006*netPIPEMegabit+bitsPerSecond*0.006/micros {
		return Measurement{}, fmt.Errorf("%g Mbps are not %d bytes in %g µs", rate, p.Cell.MessageBytes, micros)
	}
	m := metrics{}
	err := errors.Join(m.put("message_time_seconds", one), m.put("throughput_bits_per_second", bitsPerSecond), m.put("messages", times))
	return Measurement{MeasuredSeconds: 2 * times * one, Metrics: m}, err
}
