package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// answerWithin bounds the wait for a registry's answer to one request, after it was sent.
const answerWithin = 2 * time.Minute

// errPlainHTTP is the error of a request that would go out unencrypted.
var errPlainHTTP = errors.New("https is required")

// Registry is where images are pushed to, and how.
type Registry struct {
	// Insecure allows http where the registry does not speak https. Certificates are
	// checked all the same.
	Insecure bool
	// Keychain has the credentials; nil: those of docker login, podman login and
	// their credential helpers.
	Keychain authn.Keychain
	// Agent is the user agent, "cnibench/v0.1.0".
	Agent string
}

// Pushed is what a registry has.
type Pushed struct {
	Name      string   `json:"name"`
	Digest    string   `json:"digest"`    // of the index of all platforms
	Platforms []string `json:"platforms"` // "linux/amd64"
	Bytes     int64    `json:"bytes"`     // of all layers, compressed
}

// CheckReference returns an error where a reference does not name a registry, a
// repository and a tag.
func CheckReference(ref string) error {
	_, err := tagOf(ref, false)
	return err
}

func tagOf(ref string, insecure bool) (name.Tag, error) {
	options := []name.Option{name.StrictValidation}
	if insecure {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(ref, options...)
	if err != nil {
		return name.Tag{}, fmt.Errorf("%q is no image of a registry: want REGISTRY/NAME:TAG, such as registry.example.com/team/cnibench:v1", ref)
	}
	return tag, nil
}

// Push pushes an image for each spec under one reference, as an index of platforms: each
// node pulls the image of its own architecture. No two specs are for the same one. The
// names of the specs are not used. The error says what the registry refused, and the cure.
func (r Registry) Push(ctx context.Context, ref string, specs []Spec) (Pushed, error) {
	tag, err := tagOf(ref, r.Insecure)
	if err != nil {
		return Pushed{}, err
	}
	index, pushed, err := indexOf(tag.TagStr(), specs)
	if err != nil {
		return Pushed{}, err
	}
	digest, err := index.Digest()
	if err != nil {
		return Pushed{}, err
	}
	pushed.Name, pushed.Digest = ref, digest.String()
	keychain := r.Keychain
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	err = remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain),
		remote.WithTransport(r.transport()), remote.WithUserAgent(r.Agent))
	if err != nil {
		if ctx.Err() != nil {
			return Pushed{}, context.Cause(ctx)
		}
		return Pushed{}, refused(tag, err)
	}
	return pushed, nil
}

// indexOf is an index with an image for each spec.
func indexOf(tag string, specs []Spec) (v1.ImageIndex, Pushed, error) {
	all, pushed := mutate.IndexMediaType(empty.Index, types.OCIImageIndex), Pushed{}
	of := map[string]string{}
	for _, s := range specs {
		architecture, err := architecture(s.Binary)
		if err != nil {
			return nil, Pushed{}, err
		}
		if other, twice := of[architecture]; twice {
			return nil, Pushed{}, fmt.Errorf("%s and %s are both for linux/%s: name one for each architecture", other, s.Binary, architecture)
		}
		of[architecture] = s.Binary
		data, err := layer(s.all())
		if err != nil {
			return nil, Pushed{}, err
		}
		compressed, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
			tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
		if err != nil {
			return nil, Pushed{}, err
		}
		one, err := assemble(tag, architecture, compressed)
		if err != nil {
			return nil, Pushed{}, err
		}
		size, err := compressed.Size()
		if err != nil {
			return nil, Pushed{}, err
		}
		all = mutate.AppendManifests(all, mutate.IndexAddendum{
			Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
		pushed.Platforms = append(pushed.Platforms, "linux/"+architecture)
		pushed.Bytes += size
	}
	return all, pushed, nil
}

// transport refuses http where it is not allowed; the library would fall back to it for
// registries on private addresses.
func (r Registry) transport() http.RoundTripper {
	base := http.DefaultTransport
	if t, ok := remote.DefaultTransport.(*http.Transport); ok {
		own := t.Clone()
		own.ResponseHeaderTimeout = answerWithin
		base = own
	}
	return encrypted{base, r.Insecure}
}

// encrypted sends requests by https only, unless http is allowed.
type encrypted struct {
	next     http.RoundTripper
	insecure bool
}

// RoundTrip is that of http.RoundTripper.
func (e encrypted) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !e.insecure {
		return nil, errPlainHTTP
	}
	return e.next.RoundTrip(req)
}

// refused is the error of a push with its cure.
func refused(tag name.Tag, err error) error {
	registry := tag.RegistryStr()
	var answer *transport.Error
	cure := ""
	switch errors.As(err, &answer); {
	case answer != nil && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		cure = fmt.Sprintf("log in as a user who can push to %s: docker login %s, or podman login; cnibench uses the same credentials", tag.RepositoryStr(), registry)
	case answer != nil && answer.StatusCode == http.StatusNotFound:
		cure = fmt.Sprintf("create the repository %s at %s, or check the name", tag.RepositoryStr(), registry)
	case answer != nil && answer.StatusCode == http.StatusTooManyRequests:
		cure = "try again later: the registry limits requests"
	case errors.Is(err, errPlainHTTP):
		cure = fmt.Sprintf("check the name and the certificate of %s; if it speaks http only, add --insecure", registry)
	default:
		cure = fmt.Sprintf("check that %s can be reached from this machine", registry)
	}
	return fmt.Errorf("push to %s: %w\n%s", tag, err, cure)
}
