package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// serve starts a registry on loopback; before may answer a request itself.
func serve(t *testing.T, before func(w http.ResponseWriter, r *http.Request) (answered bool)) (address string) {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func both(t *testing.T) []Spec {
	t.Helper()
	extra := []File{{Path: "/etc/passwd", Data: []byte("x\n"), Mode: 0o644}}
	return []Spec{{Binary: fake(t, elf.EM_X86_64, elf.PT_LOAD), Files: extra}, {Binary: fake(t, elf.EM_AARCH64, elf.PT_LOAD), Files: extra}}
}

// What was pushed is pulled again, for each architecture, with the program and its
// configuration. A second push of the same files has the same digest.
func TestPushedImageIsPulledForEachArchitecture(t *testing.T) {
	ref := serve(t, nil) + "/team/cnibench:v1"
	r := Registry{Insecure: true, Agent: "cnibench/test"}
	specs := both(t)
	pushed, err := r.Push(t.Context(), ref, specs)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(pushed.Platforms, want) || pushed.Name != ref || pushed.Bytes == 0 {
		t.Errorf("pushed %+v, want the platforms %q", pushed, want)
	}
	if again, err := r.Push(t.Context(), ref, specs); err != nil || again.Digest != pushed.Digest {
		t.Errorf("the same files have the digests %s and %s (%v)", pushed.Digest, again.Digest, err)
	}
	tag, err := name.NewTag(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	if digest, _ := index.Digest(); digest.String() != pushed.Digest {
		t.Errorf("the registry has %v, want %s", digest, pushed.Digest)
	}
	for i, architecture := range []string{"amd64", "arm64"} {
		one, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
		if err != nil {
			t.Fatal(err)
		}
		config, err := one.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		layers, err := one.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d layers, %v", len(layers), err)
		}
		if kind, _ := layers[0].MediaType(); kind != types.OCILayer {
			t.Errorf("the layer is %s, want %s", kind, types.OCILayer)
		}
		if config.Architecture != architecture || config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != Program {
			t.Errorf("%s: the configuration is %+v", architecture, config)
		}
		files := pulled(t, layers[0])
		if program, err := (File{Source: specs[i].Binary}).read(); err != nil || !bytes.Equal(files["cnibench"], program) {
			t.Errorf("%s: another program was pulled (%v)", architecture, err)
		}
		if string(files["etc/passwd"]) != "x\n" {
			t.Errorf("%s: /etc/passwd is %q", architecture, files["etc/passwd"])
		}
	}
}

func pulled(t *testing.T, layer v1.Layer) map[string][]byte {
	t.Helper()
	in, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	data, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := untar(t, data)
	return files
}

// A registry without https is refused unless http was allowed, also on loopback, where
// the library would use it on its own.
func TestPushNeedsHTTPS(t *testing.T) {
	requests := 0
	address := serve(t, func(http.ResponseWriter, *http.Request) bool { requests++; return false })
	_, err := Registry{}.Push(t.Context(), address+"/bench:v1", both(t)[:1])
	if err == nil || !errors.Is(err, errPlainHTTP) || !strings.Contains(err.Error(), "--insecure") {
		t.Errorf("the error is %v, want one that names --insecure", err)
	}
	if requests != 0 {
		t.Errorf("%d requests were answered over http", requests)
	}
}

type keychain struct{ user, password string }

func (k keychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	if k.user == "" {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(authn.AuthConfig{Username: k.user, Password: k.password}), nil
}

// The keychain's credentials are used. Without them the error names the cure, and no error
// has the password.
func TestPushLogsIn(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) bool {
		user, password, ok := r.BasicAuth()
		if ok && user == "ann" && password == "s3cret-word" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	for _, c := range []struct {
		keychain keychain
		want     string
	}{
		{keychain{"ann", "s3cret-word"}, ""},
		{keychain{}, "docker login " + address},
		{keychain{"ann", "wr0ng-word"}, "docker login " + address},
	} {
		_, err := Registry{Insecure: true, Keychain: c.keychain}.Push(t.Context(), address+"/team/cnibench:v1", both(t)[:1])
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.keychain.user, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "-word") {
			t.Errorf("the error has the password: %v", err)
		}
	}
}

func TestPushRefusals(t *testing.T) {
	missing := serve(t, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") || strings.Contains(r.URL.Path, "/manifests/") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known"}]}`))
			return true
		}
		return false
	})
	one := both(t)[:1]
	for _, c := range []struct {
		ref   string
		specs []Spec
		want  string
	}{
		{missing + "/team/cnibench:v1", one, "create the repository team/cnibench"},
		{"127.0.0.1:1/bench:v1", one, "can be reached"},
		{"cnibench:v1", one, "want REGISTRY/NAME:TAG"},
		{"registry.invalid/cnibench", one, "want REGISTRY/NAME:TAG"},
		{missing + "/bench:v1", []Spec{one[0], one[0]}, "both for linux/amd64"},
	} {
		if _, err := (Registry{Insecure: true}).Push(t.Context(), c.ref, c.specs); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.ref, err, c.want)
		}
	}
	for ref, good := range map[string]bool{"registry.invalid/team/cnibench:v1": true, "localhost:5000/bench:v1": true, "a:v1": false, "registry.invalid/bench": false, "": false} {
		if err := CheckReference(ref); (err == nil) != good {
			t.Errorf("%q: %v, want an error: %t", ref, err, !good)
		}
	}
}
