package traffic

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

const (
	tokenBytes     = 16
	maxStreams     = 256
	maxBackground  = 1000
	maxMessage     = 1 << 20
	maxDatagram    = 65507 // the largest payload of a UDP datagram over IPv4
	maxBurst       = 1024
	loadProbeBytes = 64 // of the round trips of latency_under_load
	wordBytes      = 8  // of a datagram, which begins with its number
	// lastMark is set in the mark of a server that was asked to finish: its client is through.
	lastMark = 0x80
	// idleLimit is how long a half waits without hearing from the other before
	// it gives up: a fault must be reported within 5 s.
	idleLimit = 3 * time.Second
	// pollInterval bounds every blocking system call.
	pollInterval = 100 * time.Millisecond
)

// The values of Config.Direction.
const (
	Forward       = ""
	Reverse       = "reverse"
	Bidirectional = "bidirectional"
)

func (c Config) udp() bool { return c.Test == UDPStream || c.Test == UDPRR }

func (c Config) roundTrips() bool { return c.Test == TCPRR || c.Test == UDPRR || c.Test == TCPCRR }

// responseBytes is the size of a response.
func (c Config) responseBytes() int {
	if c.ResponseBytes > 0 {
		return c.ResponseBytes
	}
	if c.Test == LatencyUnderLoad {
		return loadProbeBytes
	}
	return c.MessageBytes
}

// requestBytes is the size of a request.
func (c Config) requestBytes() int {
	if c.Test == LatencyUnderLoad {
		return c.responseBytes()
	}
	return c.MessageBytes
}

func (c Config) burst() int { return max(1, c.Burst) }

// token decodes the run's token.
func (c Config) token() ([tokenBytes]byte, error) {
	var t [tokenBytes]byte
	raw, err := hex.DecodeString(c.Token)
	if err != nil || len(raw) != tokenBytes {
		return t, fmt.Errorf("the token must be %d bytes in hex", tokenBytes)
	}
	copy(t[:], raw)
	return t, nil
}

// Validate reports what cannot be run, and what could instead.
func (c Config) Validate() error {
	if _, err := c.token(); err != nil {
		return err
	}
	known := []string{TCPStream, UDPStream, TCPRR, UDPRR, TCPCRR, LatencyUnderLoad}
	found := false
	for _, k := range known {
		found = found || c.Test == k
	}
	limit := maxMessage
	if c.udp() {
		limit = maxDatagram
	}
	switch {
	case !found:
		return fmt.Errorf("unknown test %q (known: %v)", c.Test, known)
	case c.MessageBytes < 1 || c.MessageBytes > limit:
		return fmt.Errorf("%s: a message of %d bytes: 1 to %d are possible", c.Test, c.MessageBytes, limit)
	case c.ResponseBytes < 0 || c.ResponseBytes > limit:
		return fmt.Errorf("%s: a response of %d bytes: 1 to %d are possible", c.Test, c.ResponseBytes, limit)
	case c.Streams < 1 || c.Streams > maxStreams:
		return fmt.Errorf("%d streams: 1 to %d are possible", c.Streams, maxStreams)
	case c.BackgroundStreams < 0 || c.BackgroundStreams > maxBackground:
		return fmt.Errorf("%d background streams: 0 to %d are possible", c.BackgroundStreams, maxBackground)
	case c.Window <= 0 || c.Warmup < 0:
		return fmt.Errorf("a window of %v after %v: it must be longer than nothing", c.Window, c.Warmup)
	case c.RateBitsPerSecond < 0 || c.RatePerSecond < 0:
		return errors.New("a rate below 0")
	case c.Burst < 0 || c.Burst > maxBurst:
		return fmt.Errorf("a burst of %d: 1 to %d are possible", c.Burst, maxBurst)
	case c.Direction != Forward && c.Direction != Reverse && c.Direction != Bidirectional:
		return fmt.Errorf("unknown direction %q (known: %q, %q, or none for client to server)", c.Direction, Reverse, Bidirectional)
	}
	return c.validateFactors()
}

// validateFactors refuses what a test would not heed.
func (c Config) validateFactors() error {
	rr := c.Test == TCPRR || c.Test == UDPRR
	switch {
	case c.Direction != Forward && c.roundTrips():
		return fmt.Errorf("%s goes both ways: it takes no direction", c.Test)
	case c.Direction == Bidirectional && c.Test == LatencyUnderLoad:
		return errors.New("latency_under_load loads one direction: none or \"reverse\"")
	case c.ResponseBytes > 0 && (c.Test == TCPStream || c.Test == UDPStream):
		return fmt.Errorf("%s has no responses", c.Test)
	case c.RateBitsPerSecond > 0 && c.roundTrips():
		return fmt.Errorf("%s is paced by rate_per_second, not by bits", c.Test)
	case c.RatePerSecond > 0 && !rr && c.Test != LatencyUnderLoad:
		return fmt.Errorf("%s has no open loop: rate_per_second is for tcp_rr, udp_rr and latency_under_load", c.Test)
	case c.burst() > 1 && !rr:
		return fmt.Errorf("%s has no burst: it is for tcp_rr and udp_rr", c.Test)
	case c.burst() > 1 && c.RatePerSecond > 0:
		return errors.New("an open loop sends when it is time: it takes no burst")
	case c.Test == UDPRR && (c.burst() > 1 || c.RatePerSecond > 0) && min(c.MessageBytes, c.responseBytes()) < wordBytes:
		return fmt.Errorf("udp_rr with a burst or a rate needs %d bytes in request and response, to match answers to requests", wordBytes)
	case c.BackgroundStreams > 0 && (c.Test != TCPStream && c.Test != TCPRR || c.Direction != Forward):
		return fmt.Errorf("%s: background_streams are for tcp_stream, client to server, and tcp_rr", c.Test)
	case c.Sliced && !c.Sliceable():
		return fmt.Errorf("%s cannot come in slices: paced traffic, background streams and loaded latency need one long window", c.Test)
	case c.CongestionControl != "" && c.udp():
		return fmt.Errorf("%s has no congestion_control: it is for TCP", c.Test)
	case c.UDPGSO && c.Test != UDPStream:
		return fmt.Errorf("%s: udp_gso is for udp_stream", c.Test)
	case c.Mark != 0 && (c.Test != TCPCRR || c.Sliced):
		return fmt.Errorf("%s: a mark is for tcp_crr in one window", c.Test)
	case c.Mark&lastMark != 0:
		return fmt.Errorf("a mark of %d: 1 to %d are possible", c.Mark, lastMark-1)
	case c.ZeroCopy && c.Test != TCPStream && c.Test != LatencyUnderLoad:
		return fmt.Errorf("%s: zero_copy is for tcp_stream", c.Test)
	}
	return nil
}
