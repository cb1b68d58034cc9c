// Package image makes a container image of this program without Docker: one
// layer, in a tar that is an OCI image layout and a Docker archive at once, so
// that ctr, kind, docker, podman, skopeo and crane all take it; or in a registry,
// for several architectures.
package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// User is the user and group that an image's program runs as; it has no name on
// any node.
const User = 65532

// Program is where this program is in an image.
const Program = "/cnibench"

// Spec says what is in an image.
type Spec struct {
	// Name is the image's reference with a tag: see Name.
	Name string
	// Binary is the file of a static cnibench for Linux. The image is for the
	// architecture that it was built for.
	Binary string
	// Files are further files of the image: see Tools.
	Files []File
}

// Info is what was written.
type Info struct {
	Name     string `json:"name"`
	Platform string `json:"platform"` // "linux/amd64"
	Digest   string `json:"digest"`   // of the manifest
	Bytes    int64  `json:"bytes"`    // of the layer, which is not compressed
}

// Name is the reference of an image of this program's version. Its host is under
// .invalid, which nobody can have (RFC 2606), so that a node that was not given
// the image says so and pulls no other.
func Name(version string, tools bool) string {
	repository := "cnibench.invalid/cnibench"
	if tools {
		repository += "-tools"
	}
	tag := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", r) {
			return r
		}
		return '-' // "v1.2.3+dirty": a tag has no plus
	}, version)
	return repository + ":" + tag
}

// Write writes the image as a tar. The same files and name give the same bytes:
// there is no time in it.
func Write(w io.Writer, s Spec) (Info, error) {
	repository, tag, ok := strings.Cut(s.Name[strings.LastIndex(s.Name, "/")+1:], ":")
	if !ok || repository == "" || tag == "" {
		return Info{}, fmt.Errorf("image name %q: want NAME:TAG, such as %s", s.Name, Name("v1", false))
	}
	architecture, err := architecture(s.Binary)
	if err != nil {
		return Info{}, err
	}
	data, err := layer(s.all())
	if err != nil {
		return Info{}, err
	}
	one, err := assemble(tag, architecture, static.NewLayer(data, types.OCIUncompressedLayer))
	if err != nil {
		return Info{}, err
	}
	parts, info, err := archive(s.Name, tag, architecture, one, data)
	if err != nil {
		return Info{}, err
	}
	out := tar.NewWriter(w)
	for _, p := range parts {
		if err := add(out, p.name, 0o644, p.data); err != nil {
			return Info{}, fmt.Errorf("write image: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return Info{}, fmt.Errorf("write image: %w", err)
	}
	return info, nil
}

// part is one file of the tar.
type part struct {
	name string
	data []byte
}

// all are the files of the image, the program first.
func (s Spec) all() []File {
	return append([]File{{Path: Program, Source: s.Binary, Mode: 0o755}}, s.Files...)
}

// assemble is the image for an architecture with one layer. There is no time in it.
func assemble(tag, architecture string, layer v1.Layer) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err := mutate.ConfigFile(base, &v1.ConfigFile{
		Architecture: architecture, OS: "linux",
		Config: v1.Config{
			User:       fmt.Sprintf("%d:%d", User, User),
			Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Entrypoint: []string{Program},
			Cmd:        []string{"agent", "--wait"},
			Labels:     map[string]string{"org.opencontainers.image.title": "cnibench", "org.opencontainers.image.version": tag, "org.opencontainers.image.licenses": "Apache-2.0"},
		},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "cnibench image"}})
}

// archive is all files of the tar. index.json and oci-layout make it an OCI
// image layout (OCI Image Format Specification 1.1, image-layout.md),
// manifest.json a Docker archive, over the same blobs.
func archive(name, tag, architecture string, one v1.Image, layer []byte) ([]part, Info, error) {
	raw, rawErr := one.RawManifest()
	manifest, manifestErr := one.Manifest()
	config, configErr := one.RawConfigFile()
	described, describedErr := partial.Descriptor(one)
	if err := errors.Join(rawErr, manifestErr, configErr, describedErr); err != nil {
		return nil, Info{}, err
	}
	described.Platform = &v1.Platform{OS: "linux", Architecture: architecture}
	// containerd takes the first, others the second (annotations.md).
	described.Annotations = map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}
	index, indexErr := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{*described}})
	configBlob, layerBlob := blob(manifest.Config.Digest), blob(manifest.Layers[0].Digest)
	docker, dockerErr := json.Marshal(tarball.Manifest{{Config: configBlob, RepoTags: []string{name}, Layers: []string{layerBlob}}})
	parts := []part{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", index},
		{"manifest.json", docker},
		{blob(described.Digest), raw},
		{configBlob, config},
		{layerBlob, layer},
	}
	info := Info{Name: name, Platform: "linux/" + architecture, Digest: described.Digest.String(), Bytes: int64(len(layer))}
	return parts, info, errors.Join(indexErr, dockerErr)
}

// blob is where an image layout has a blob.
func blob(h v1.Hash) string { return path.Join("blobs", h.Algorithm, h.Hex) }

// layer is the tar of an image's only layer: the files, and a folder for
// temporary ones that every user may write to.
func layer(files []File) ([]byte, error) {
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	made := map[string]bool{}
	if err := folder(out, made, "/tmp", 0o1777); err != nil {
		return nil, err
	}
	for _, f := range files {
		data, err := f.read()
		if err != nil {
			return nil, err
		}
		if err := folder(out, made, path.Dir(f.Path), 0o755); err != nil {
			return nil, err
		}
		if err := add(out, strings.TrimPrefix(f.Path, "/"), f.Mode, data); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	err := out.Close()
	return b.Bytes(), err
}

// folder adds a folder after those that it is in, each once.
func folder(out *tar.Writer, made map[string]bool, name string, mode int64) error {
	if name == "/" || made[name] {
		return nil
	}
	if err := folder(out, made, path.Dir(name), 0o755); err != nil {
		return err
	}
	made[name] = true
	return out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(name, "/") + "/", Mode: mode})
}

func add(out *tar.Writer, name string, mode int64, data []byte) error {
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := out.Write(data)
	return err
}
