package live

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// get asks for an address below the server's and gives status and body.
func get(t *testing.T, method, url string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body), res.Header
}

// watch reads the events of a server.
func watch(t *testing.T, url string) <-chan Status {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	out := make(chan Status, 100)
	go func() {
		defer close(out)
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var s Status
				if json.Unmarshal([]byte(data), &s) == nil {
					out <- s
				}
			}
		}
	}()
	return out
}

func next(t *testing.T, from <-chan Status) Status {
	t.Helper()
	select {
	case s, ok := <-from:
		if !ok {
			t.Fatal("the events ended")
		}
		return s
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
	}
	return Status{}
}

func TestLive(t *testing.T) {
	made := 0
	s, err := Start("a <b> run", 3, func(w io.Writer) error {
		made++
		if made == 2 {
			return errors.New("no such directory")
		}
		_, err := fmt.Fprintf(w, "page %d", made)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	url := s.URL()
	if host, _, err := net.SplitHostPort(s.listen.Addr().String()); err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("it listens on %s", s.listen.Addr())
	}
	s.Sampled(1, 10)
	if made != 0 {
		t.Error("a page was made although nobody looks")
	}
	base := strings.TrimSuffix(url, s.token+"/")
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "", 404}, {"GET", "report", 404}, {"GET", strings.Repeat("A", len(s.token)) + "/", 404}, {"GET", s.token, 404},
		{"GET", s.token + "/", 200}, {"HEAD", s.token + "/", 200}, {"POST", s.token + "/", 405}, {"PUT", s.token + "/report", 405},
		{"GET", s.token + "/report", 404}, {"GET", s.token + "/../samples.jsonl", 404}, {"GET", s.token + "/x", 404},
	} {
		if got, _, _ := get(t, c.method, base+c.path); got != c.want {
			t.Errorf("%s /%s: status %d, want %d", c.method, c.path, got, c.want)
		}
	}
	_, page, header := get(t, "GET", url)
	if !strings.Contains(page, "a &lt;b&gt; run") || header.Get("Cache-Control") != "no-store" || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("shell %q with %v", page, header)
	}

	events := watch(t, url)
	if first := next(t, events); first.Done != 4 || first.Left != 10 || first.Version != 0 {
		t.Errorf("status %+v", first)
	}
	s.Sampled(2, 9)
	for got := next(t, events); got.Version != 1; got = next(t, events) {
	}
	if _, body, _ := get(t, "GET", url+"report"); body != "page 1" {
		t.Errorf("page %q", body)
	}
	s.notBefore = time.Now().Add(time.Hour) // as after a page that took long
	s.Sampled(2, 8)
	if got := next(t, events); made != 1 || got.Done != 6 {
		t.Errorf("%d pages, status %+v", made, got)
	}
	s.notBefore = time.Time{}
	s.Sampled(2, 7)
	if got := next(t, events); got.Trouble != "no such directory" {
		t.Errorf("status %+v", got)
	}
	if _, body, _ := get(t, "GET", url+"report"); body != "page 1" {
		t.Errorf("after a page that failed: %q", body)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for got := next(t, events); !got.Ended; got = next(t, events) {
	}
	if c, err := net.Dial("tcp", s.listen.Addr().String()); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

// TestPagesTakeLittleTime: a page that takes long is not made again soon.
func TestPagesTakeLittleTime(t *testing.T) {
	s, err := Start("slow", 0, func(io.Writer) error { time.Sleep(20 * time.Millisecond); return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	watch(t, s.URL())
	for len(s.watching()) == 0 {
		time.Sleep(time.Millisecond)
	}
	begin := time.Now()
	s.Sampled(1, 1)
	if wait := s.notBefore.Sub(begin); wait < 20*time.Millisecond*49 {
		t.Errorf("the next page may come after %s", wait)
	}
}

func (s *Server) watching() []chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []chan struct{}
	for w := range s.watchers {
		out = append(out, w)
	}
	return out
}
