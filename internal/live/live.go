// Package live shows the report of a run while it grows: on loopback alone, at
// an address that cannot be guessed, to be read and not written. Nothing of it
// is left when the run ends.
//
// A page is made between samples, never during one, and only while somebody
// looks, so that looking changes the figures as little as it can.
package live

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed" // for the page
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

// Status is how far the run is.
type Status struct {
	// Done and Left are samples; Left is at the most.
	Done  int `json:"done"`
	Left  int `json:"left"`
	Block int `json:"block"`
	// Version counts the pages that were made; 0 is none.
	Version int `json:"version"`
	// Ended reports that the run is over, and Trouble why there is no page.
	Ended   bool   `json:"ended,omitempty"`
	Trouble string `json:"trouble,omitempty"`
}

// share is the most of the run's time that making pages takes.
const share = 0.02

// mostReaders bounds how many connections are served at a time.
const mostReaders = 16

// Server serves one run.
type Server struct {
	name   string
	make   func(io.Writer) error
	token  string
	listen net.Listener
	http   *http.Server
	served chan struct{} // closed when nothing is served any more
	ended  chan struct{} // closed when the run is over

	mu        sync.Mutex
	status    Status
	page      []byte
	notBefore time.Time
	watchers  map[chan struct{}]bool
}

// Start listens on a free port of 127.0.0.1. name is that of the run, recorded
// the number of samples that it has already; page writes its report as it is
// when it is called.
func Start(name string, recorded int, page func(io.Writer) error) (*Server, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("--live: %w", err)
	}
	s := &Server{name: name, make: page, token: rand.Text(), listen: l, served: make(chan struct{}), ended: make(chan struct{}), watchers: map[chan struct{}]bool{}}
	s.status.Done = recorded
	s.http = &http.Server{Handler: http.HandlerFunc(s.handle), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(netutil.LimitListener(l, mostReaders)) // ends with ErrServerClosed
	}()
	return s, nil
}

// URL is where the report is, with the token that opens it.
func (s *Server) URL() string { return "http://" + s.listen.Addr().String() + "/" + s.token + "/" }

// Sampled announces a new record. It makes a new page when somebody looks and
// enough time has gone by since the last; it is called between samples.
func (s *Server) Sampled(block, left int) {
	s.mu.Lock()
	s.status.Done++
	s.status.Block, s.status.Left = block, left
	wanted := len(s.watchers) > 0 && !time.Now().Before(s.notBefore)
	s.mu.Unlock()
	if wanted {
		s.render()
	}
	s.wake()
}

func (s *Server) render() {
	var b bytes.Buffer
	begin := time.Now()
	err := s.make(&b)
	s.mu.Lock()
	defer s.mu.Unlock()
	took := time.Since(begin)
	s.notBefore = time.Now().Add(time.Duration(float64(took) * (1/share - 1)))
	if err != nil {
		s.status.Trouble = err.Error()
		return
	}
	s.status.Trouble = ""
	s.status.Version++
	s.page = b.Bytes()
}

// wake lets every watcher know that the status has changed.
func (s *Server) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		select {
		case w <- struct{}{}:
		default: // it knows already
		}
	}
}

// Close informs open pages that the run is over, and stops serving.
func (s *Server) Close() error {
	s.mu.Lock()
	s.status.Ended = true
	s.mu.Unlock()
	close(s.ended)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.served
	return err
}

//go:embed live.gohtml
var shell string

//go:embed live.js
var script string

// handle serves three addresses below the token, and nothing else.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	token, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !ok || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this report is read-only", http.StatusMethodNotAllowed)
		return
	}
	switch rest {
	case "":
		s.serveShell(w)
	case "report":
		s.servePage(w)
	case "events":
		s.serveEvents(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) serveShell(w http.ResponseWriter) {
	sum := sha256.Sum256([]byte(script))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; frame-src 'self'; img-src data:; frame-ancestors 'none'; script-src 'sha256-"+
		base64.StdEncoding.EncodeToString(sum[:])+"'")
	t, err := template.New("live").Parse(shell)
	if err == nil {
		err = t.Execute(w, struct {
			Name   string
			Script template.JS
		}{s.name, template.JS(script)})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (s *Server) servePage(w http.ResponseWriter) {
	s.mu.Lock()
	page := s.page
	s.mu.Unlock()
	if page == nil {
		http.Error(w, "no page yet: it is made after the next sample", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "frame-ancestors 'self'")
	_, _ = w.Write(page) // the reader may have gone
}

// serveEvents sends the status as it changes (server-sent events), until the
// run is over or the reader has gone.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	changed := make(chan struct{}, 1)
	s.mu.Lock()
	s.watchers[changed] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, changed)
		s.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	for {
		s.mu.Lock()
		status := s.status
		s.mu.Unlock()
		line, err := json.Marshal(status)
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", line); err != nil || control.Flush() != nil || status.Ended {
			return
		}
		select {
		case <-changed:
		case <-s.ended:
		case <-r.Context().Done():
			return
		}
	}
}
