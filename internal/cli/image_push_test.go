package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/cnibench/cnibench/internal/image"
)

// elfHead is the head of a static program for Linux (elf(5)) on the machine of a number.
func elfHead(t *testing.T, machine byte) string {
	t.Helper()
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	b[16], b[18], b[20], b[52], b[54], b[58] = 2, machine, 1, 64, 56, 64
	path := filepath.Join(t.TempDir(), "cnibench")
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestImagePush pushes an image of two architectures to a registry on loopback, which
// speaks http: that has to be allowed.
func TestImagePush(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // no credentials of whoever runs the tests
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	ref := strings.TrimPrefix(server.URL, "http://") + "/team/cnibench:v1"
	const amd64, arm64 = 62, 183 // EM_X86_64, EM_AARCH64
	args := []string{"image", "--push", ref, "--binary", elfHead(t, amd64), "--binary", elfHead(t, arm64)}
	push := func(rest ...string) (string, error) {
		var stdout, stderr bytes.Buffer
		root := Root(&stdout, &stderr)
		root.SetArgs(append(append([]string{}, args...), rest...))
		err := root.ExecuteContext(t.Context())
		return stdout.String(), err
	}
	if out, err := push(); err == nil || !strings.Contains(err.Error(), "add --insecure") || errors.As(err, new(usageError)) {
		t.Errorf("without --insecure: %v\n%s", err, out)
	}
	out, err := push("--insecure")
	if err != nil || !strings.HasPrefix(out, "pushed "+ref+"@sha256:") || !strings.Contains(out, ": linux/amd64, linux/arm64, ") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = push("--insecure", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var pushed image.Pushed
	if err := json.Unmarshal([]byte(out), &pushed); err != nil || pushed.Name != ref || len(pushed.Platforms) != 2 {
		t.Errorf("%+v, %v", pushed, err)
	}
}
