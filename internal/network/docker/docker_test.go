package docker

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
)

// TestPauseProgramWaits runs it: it must not end before it is killed.
func TestPauseProgramWaits(t *testing.T) {
	program, err := pauseProgram(runtime.GOARCH)
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "pause")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	r := exec.NewRunner()
	defer r.Close()
	p, err := r.StartPiped(t.Context(), exec.Cmd{Argv: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	// It sleeps in its system call, and is no zombie.
	for state := "R"; state != "S"; {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID()), "stat"))
		if err != nil {
			t.Fatal(err)
		}
		if state = strings.Fields(string(stat))[2]; state == "Z" {
			t.Fatalf("it ended: %v", p.Wait())
		}
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended with %v", err)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		if _, err := pauseProgram(architecture); err != nil {
			t.Error(err)
		}
	}
	if _, err := pauseProgram("s390x"); err == nil || !strings.Contains(err.Error(), "amd64 and arm64") {
		t.Errorf("s390x: %v", err)
	}
	var tar bytes.Buffer
	if err := writePauseImage(&tar, t.TempDir()); err != nil || tar.Len() > 64<<10 {
		t.Errorf("an image of %d bytes (%v)", tar.Len(), err)
	}
}

func TestWithNamespace(t *testing.T) {
	const spec = `{"process":{"env":["PATH=/bin","CNIBENCH_NETNS=/proc/7/fd/8"],"oomScoreAdj":0,"rlimits":[{"hard":18446744073709551615}]},
 "linux":{"namespaces":[{"type":"mount"},{"type":"network"}]}}`
	got, err := withNamespace([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"path":"/proc/7/fd/8","type":"network"}`, `{"type":"mount"}`, "18446744073709551615"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if strings.Contains(string(got), "oomScoreAdj") {
		t.Errorf("the score is left: %s", got)
	}
	const onHost = `{"process":{"env":["PATH=/bin"]},"linux":{"namespaces":[{"type":"network","path":"/run/docker/netns/default"}]}}`
	if got, err := withNamespace([]byte(onHost)); err != nil || !strings.Contains(string(got), `{"path":"/run/docker/netns/default","type":"network"}`) {
		t.Errorf("a container with the node's network: %s (%v)", got, err)
	}
	for bad, want := range map[string]string{
		"{": "EOF", `{}`: "has no CNIBENCH_NETNS", `{"linux":{"namespaces":[{"type":"network"}]}}`: "has no CNIBENCH_NETNS",
		`{"linux":{"namespaces":[{"type":"network","path":""}]}}`: "has no CNIBENCH_NETNS",
		`{"process":{"env":["CNIBENCH_NETNS=x"]}}`:                "no network namespace",
	} {
		if _, err := withNamespace([]byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", bad, err, want)
		}
	}
}

func TestDockerCalls(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /v1.41/containers/pod/json":
			_, _ = w.Write([]byte(`{"State":{"Pid":77},"NetworkSettings":{"Networks":{"bridge":{"IPAddress":"10.244.1.2","IPPrefixLen":24}}}}`))
		case "DELETE /v1.41/containers/gone":
			http.Error(w, `{"message":"No such container: gone"}`, http.StatusNotFound)
		default:
			http.Error(w, `{"message":"the wire is \u001b[2J cut"}`, http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	d := &client{&http.Client{Transport: toServer{server.Listener.Addr().String()}}}
	e, err := d.endpoint(t.Context(), "pod", "bridge")
	if err != nil || e.IPAddress != "10.244.1.2" || e.IPPrefixLen != 24 {
		t.Errorf("%+v (%v)", e, err)
	}
	if _, err := d.endpoint(t.Context(), "pod", "overlay0"); err == nil || !strings.Contains(err.Error(), "not in the network overlay0") {
		t.Errorf("another network: %v", err)
	}
	if pid, err := d.process(t.Context(), "pod"); err != nil || pid != 77 {
		t.Errorf("its process is %d (%v)", pid, err)
	}
	if err := d.remove(t.Context(), "gone"); err != nil {
		t.Errorf("a container that does not exist: %v", err)
	}
	err = d.run(t.Context(), "pod", "bridge", "/proc/1/fd/3")
	if err == nil || !strings.Contains(err.Error(), `the wire is \x1b[2J cut (status 500)`) {
		t.Errorf("run: %v", err)
	}
	if _, err := openDocker(t.TempDir()); !errors.Is(err, errNoDocker) {
		t.Errorf("no dockerd: %v", err)
	}
}

// toServer sends every request to a test's server.
type toServer struct{ address string }

func (s toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Host = s.address
	return http.DefaultTransport.RoundTrip(r)
}
