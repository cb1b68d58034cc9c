//go:build linux

package agent

import (
	"bufio"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cnibench/cnibench/internal/traffic"
)

// A pod that is added while a campaign runs reports to the agent of another pod: its first
// process connects again and again until it is answered. So the agent sees when the pod can
// use its network, whatever the API server knows by then.

const (
	// mostNewcomers bounds how many are expected at once.
	mostNewcomers = 1000
	// mostReporting bounds the connections that are heard at the same time: the next ones wait.
	mostReporting = 2 * mostNewcomers
	// longestReport bounds a line of a newcomer, bytes: the token, a name and a number.
	longestReport = 512
	// reportWithin bounds how long a connection may take to give its line.
	reportWithin = 2 * time.Second
	// reportAnswer is what a newcomer is answered.
	reportAnswer = "welcome\n"
	// reportEvery is how often a newcomer tries, whether the tries before have failed or wait: a
	// packet that is lost is sent again only after a second. It is how exactly a time is known.
	reportEvery = 10 * time.Millisecond
	// reportTry bounds one try.
	reportTry = time.Second
)

// newcomers are the expected pods that have reported.
type newcomers struct {
	listener net.Listener
	token    string
	names    map[string]bool
	reports  chan Arrival
	// over is closed when all have arrived, or err says why not.
	over chan struct{}
	all  []Arrival
	err  error
	// strangers is how many connections gave no report of an expected pod.
	strangers atomic.Int64
}

// expect opens the port at which newcomers report, and answers once it is open.
func (s *server) expect(life context.Context, p ExpectParams) (ExpectResult, error) {
	if raw, err := hex.DecodeString(p.Token); err != nil || len(raw) < tokenBytes {
		return ExpectResult{}, fmt.Errorf("newcomers need a token of at least %d bytes, in hexadecimal digits", tokenBytes)
	}
	if len(p.Names) == 0 || len(p.Names) > mostNewcomers {
		return ExpectResult{}, fmt.Errorf("%d newcomers: 1 to %d can be expected", len(p.Names), mostNewcomers)
	}
	address, err := netip.ParseAddr(p.Address)
	if err != nil {
		return ExpectResult{}, fmt.Errorf("the address for newcomers: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(life, "tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		return ExpectResult{}, err
	}
	n := &newcomers{listener: listener, token: p.Token, names: map[string]bool{}, reports: make(chan Arrival), over: make(chan struct{})}
	for _, name := range p.Names {
		n.names[name] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if life.Err() != nil || s.newcomers != nil {
		return ExpectResult{}, errors.Join(cmp.Or(context.Cause(life), errors.New("newcomers are expected already")), listener.Close())
	}
	s.newcomers = n
	s.busy.Add(1)
	go func(busy *sync.WaitGroup) {
		defer busy.Done()
		n.take(life)
	}(s.busy)
	return ExpectResult{Port: listener.Addr().(*net.TCPAddr).AddrPort().Port()}, nil
}

// arrived answers once all newcomers have reported.
func (s *server) arrived() (ArrivedResult, error) {
	s.mu.Lock()
	n := s.newcomers
	s.mu.Unlock()
	if n == nil {
		return ArrivedResult{}, errors.New("no newcomers are expected")
	}
	<-n.over
	s.mu.Lock()
	if s.newcomers == n {
		s.newcomers = nil
	}
	s.mu.Unlock()
	runtime.GC() // the next sample starts with a clean heap
	return ArrivedResult{Arrivals: n.all, Strangers: int(n.strangers.Load())}, n.err
}

// take takes reports until every newcomer has given one, or the sample is cancelled. Then the port
// is closed.
func (n *newcomers) take(life context.Context) {
	defer close(n.over)
	ctx, cancel := context.WithCancel(life)
	context.AfterFunc(ctx, func() { _ = n.listener.Close() }) // nothing was written to it
	var hearing sync.WaitGroup
	defer hearing.Wait()
	defer cancel()
	hearing.Go(func() {
		room := make(chan struct{}, mostReporting)
		for {
			conn, err := n.listener.Accept()
			if err != nil {
				cancel()
				return
			}
			room <- struct{}{}
			hearing.Go(func() {
				defer func() { <-room }()
				n.hear(ctx, conn)
			})
		}
	})
	reported := map[string]bool{}
	for len(n.all) < len(n.names) {
		select {
		case a := <-n.reports:
			if !reported[a.Name] { // else its answer was lost, and it has tried again
				reported[a.Name] = true
				n.all = append(n.all, a)
			}
		case <-ctx.Done():
			n.err = fmt.Errorf("%d of %d newcomers have reported: %w", len(n.all), len(n.names), cmp.Or(context.Cause(life), errors.New("their port was closed")))
			return
		}
	}
}

// hear takes one report and answers it. What is no report of an expected pod gets no answer.
func (n *newcomers) hear(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // who says nothing holds nobody up
	if conn.SetDeadline(time.Now().Add(reportWithin)) != nil {
		return
	}
	line, err := bufio.NewReader(io.LimitReader(conn, longestReport)).ReadString('\n')
	at := traffic.Now()
	if err != nil { // also of a pod's try that took too long
		n.strangers.Add(int64(min(1, len(line))))
		return
	}
	a, ok := n.parse(line)
	if !ok {
		n.strangers.Add(1)
		return
	}
	a.At = at
	if _, err := io.WriteString(conn, reportAnswer); err != nil {
		return
	}
	select {
	case n.reports <- a:
	case <-ctx.Done():
	}
}

// parse reads a report: token, name and nanoseconds, as report writes them.
func (n *newcomers) parse(line string) (a Arrival, ok bool) {
	fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
	if len(fields) != 3 || subtle.ConstantTimeCompare([]byte(fields[0]), []byte(n.token)) != 1 {
		return a, false
	}
	if !n.names[fields[1]] {
		return a, false
	}
	ran, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || ran < 0 {
		return a, false
	}
	return Arrival{Name: fields[1], Ran: time.Duration(ran)}, true
}

// report tries until the agent that expects the pod has answered, or ctx ends. began is when the
// pod's process did.
func (p Newcomer) report(ctx context.Context, began time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan struct{}, 1)
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		go func() {
			if p.try(ctx, began) == nil {
				select {
				case answered <- struct{}{}:
				default: // another try was answered too
				}
			}
		}()
		select {
		case <-answered:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// try reports once, with a packet of its own.
func (p Newcomer) try(ctx context.Context, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, reportTry)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.To.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(reportTry)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "%s %s %d\n", p.Token, p.Name, time.Since(began).Nanoseconds()); err != nil {
		return err
	}
	answer, err := bufio.NewReader(io.LimitReader(conn, int64(len(reportAnswer)))).ReadString('\n')
	if err != nil || answer != reportAnswer {
		return errors.Join(errors.New("no answer"), err)
	}
	return nil
}
