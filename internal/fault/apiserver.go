package fault

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// How is the way in which an APIServer answers.
type How string

// What an APIServer does with a request.
const (
	// Healthy: it has no objects, and says so.
	Healthy How = "healthy"
	// TooMany: 429, try again in a second.
	TooMany How = "429"
	// TooManyForLong: 429, try again in an hour.
	TooManyForLong How = "429 for an hour"
	// Broken: 500, with words that steer a terminal.
	Broken How = "500"
	// Silent: it takes the request and never answers.
	Silent How = "silent"
	// Cut: it ends the connection in the middle of its answer.
	Cut How = "cut"
	// Garbage: 200, with what is no JSON.
	Garbage How = "garbage"
	// Endless: 200, with a list that has no end.
	Endless How = "endless"
)

// APIServer is the API server of a Kubernetes without objects, over HTTP on loopback.
type APIServer struct {
	// Kubeconfig is a file that leads to it.
	Kubeconfig string

	server *httptest.Server
	over   chan struct{} // closed when the test ends

	mu   sync.Mutex
	how  How
	sent atomic.Int64
}

// NewAPIServer starts a server that answers in a way; it ends with the test.
func NewAPIServer(t testing.TB, how How) *APIServer {
	t.Helper()
	a := &APIServer{how: how, over: make(chan struct{}), Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	a.server = httptest.NewServer(a)
	t.Cleanup(func() {
		close(a.over)
		a.server.CloseClientConnections()
		a.server.Close()
	})
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: fault\nclusters: [{name: c, cluster: {server: %q}}]\n"+
		"users: [{name: u, user: {}}]\ncontexts: [{name: fault, context: {cluster: c, user: u}}]\n", a.server.URL)
	if err := os.WriteFile(a.Kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// Answer changes how it answers from now on.
func (a *APIServer) Answer(how How) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.how = how
}

// Sent is how many bytes of endless answers went out.
func (a *APIServer) Sent() int64 { return a.sent.Load() }

// ServeHTTP answers one request.
func (a *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	how := a.how
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	status := func(code int, reason, message string) {
		w.WriteHeader(code)
		// Nobody is left to hear of an answer that cannot be written.
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})
	}
	switch how {
	case TooMany, TooManyForLong:
		w.Header().Set("Retry-After", map[How]string{TooMany: "1", TooManyForLong: "3600"}[how])
		status(http.StatusTooManyRequests, "TooManyRequests", "too many requests, please try again later")
	case Broken:
		status(http.StatusInternalServerError, "InternalError", "Internal error occurred: \x1b[2J etcdserver: no leader")
	case Silent:
		select {
		case <-a.over:
		case <-r.Context().Done():
		}
	case Cut:
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"items":[`)
	case Garbage:
		fmt.Fprint(w, "\x1b[2J<html>login</html>")
	case Endless:
		a.flood(w)
	default:
		fmt.Fprint(w, `{"metadata":{},"items":[]}`)
	}
}

// flood writes a list without an end, until nobody reads it.
func (a *APIServer) flood(w http.ResponseWriter) {
	n, err := fmt.Fprint(w, `{"items":[{"metadata":{"name":"`)
	chunk := make([]byte, 1<<20)
	for i := range chunk {
		chunk[i] = 'x'
	}
	for err == nil {
		a.sent.Add(int64(n))
		n, err = w.Write(chunk)
	}
}
