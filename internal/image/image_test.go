package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// fake is the file of a program: an ELF header (elf(5)) with one program header
// of a type.
func fake(t *testing.T, machine elf.Machine, kind elf.ProgType) string {
	t.Helper()
	b := make([]byte, 64+56)
	copy(b, "\x7fELF\x02\x01\x01")
	b[16], b[18], b[19], b[20] = 2, byte(machine), byte(machine>>8), 1 // ET_EXEC, machine, version
	b[32], b[52], b[54], b[56] = 64, 64, 56, 1                         // program headers: offset, sizes, number
	b[58] = 64                                                         // size of a section header
	b[64] = byte(kind)
	file := filepath.Join(t.TempDir(), "cnibench")
	if err := os.WriteFile(file, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func untar(t *testing.T, data []byte) (map[string][]byte, []*tar.Header) {
	t.Helper()
	files, headers := map[string][]byte{}, []*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, h)
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// Both readings of the tar lead to the same layer, each over digests that hold.
func TestBothReadingsLeadToTheProgram(t *testing.T) {
	binary := fake(t, elf.EM_AARCH64, elf.PT_LOAD)
	var b, again bytes.Buffer
	spec := Spec{Name: "localhost:5000/a/cnibench:v1", Binary: binary, Files: []File{{Path: "/etc/passwd", Data: []byte("x\n"), Mode: 0o644}}}
	info, err := Write(&b, spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Write(&again, spec); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("the same files give other bytes (%v)", err)
	}
	files, _ := untar(t, b.Bytes())
	get := func(d v1.Descriptor) []byte {
		data := files["blobs/sha256/"+d.Digest.Hex]
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != d.Digest.Hex || int64(len(data)) != d.Size {
			t.Fatalf("blob %v is not what its name says", d.Digest)
		}
		return data
	}
	var index v1.IndexManifest
	decode(t, files["index.json"], &index)
	var manifest v1.Manifest
	decode(t, get(index.Manifests[0]), &manifest)
	var config v1.ConfigFile
	decode(t, get(manifest.Config), &config)
	layer := get(manifest.Layers[0])
	if index.Manifests[0].Digest.String() != info.Digest || info.Platform != "linux/arm64" || config.Architecture != "arm64" {
		t.Errorf("info is %+v, the architecture %q", info, config.Architecture)
	}
	if config.RootFS.DiffIDs[0] != manifest.Layers[0].Digest || config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != Program {
		t.Errorf("config is %+v", config)
	}
	var docker []struct {
		Config           string
		RepoTags, Layers []string
	}
	decode(t, files["manifest.json"], &docker)
	if !bytes.Equal(files[docker[0].Layers[0]], layer) || !bytes.Equal(files[docker[0].Config], get(manifest.Config)) || docker[0].RepoTags[0] != spec.Name {
		t.Errorf("the Docker archive has %+v", docker)
	}
	inside, headers := untar(t, layer)
	var names []string
	for _, h := range headers {
		names = append(names, h.FileInfo().Mode().String()+" "+h.Name)
	}
	if want := []string{"dtrwxrwxrwx tmp/", "-rwxr-xr-x cnibench", "drwxr-xr-x etc/", "-rw-r--r-- etc/passwd"}; !slices.Equal(names, want) {
		t.Errorf("the layer has %q", names)
	}
	if program, _ := os.ReadFile(binary); !bytes.Equal(inside["cnibench"], program) {
		t.Error("the program is another")
	}
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
}

func TestRefusals(t *testing.T) {
	static := fake(t, elf.EM_X86_64, elf.PT_LOAD)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, binary, want string }{
		{"a:b", fake(t, elf.EM_X86_64, elf.PT_INTERP), "CGO_ENABLED=0"},
		{"a:b", fake(t, elf.EM_386, elf.PT_LOAD), "EM_386"},
		{"a:b", script, "GOOS=linux"},
		{"a:b", script + "no", "no such file"},
		{"localhost:5000/a", static, "want NAME:TAG"},
		{":b", static, "want NAME:TAG"},
	} {
		if _, err := Write(io.Discard, Spec{Name: c.name, Binary: c.binary}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", c.name, err, c.want)
		}
	}
}

func TestName(t *testing.T) {
	if got := Name("v1.2.3+dirty", true); got != "cnibench.invalid/cnibench-tools:v1.2.3-dirty" {
		t.Error(got)
	}
}

func TestLoaded(t *testing.T) {
	got, err := loaded("\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n")
	if want := []string{"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := loaded("\tstatically linked\n"); err != nil || got != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := loaded("\tlibx.so.1 => not found\n"); err == nil || !strings.Contains(err.Error(), "libx.so.1") {
		t.Error(err)
	}
}
