package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/exec"
)

// platforms are those of a whole release.
func platforms() []string {
	return []string{"darwin-amd64", "darwin-arm64", "linux-amd64", "linux-arm64"}
}

// program is the head of a program: an ELF file (elf(5)) of a machine, or a Mach-O file
// (mach-o/loader.h) of a processor.
func program(platform string) []byte {
	b := make([]byte, 64)
	switch platform {
	case "linux-amd64", "linux-arm64":
		copy(b, "\x7fELF\x02\x01\x01")
		machine := map[string]elf.Machine{"linux-amd64": elf.EM_X86_64, "linux-arm64": elf.EM_AARCH64}[platform]
		b[16], b[20], b[52], b[54], b[58] = 2, 1, 64, 56, 64 // ET_EXEC, version, sizes
		binary.LittleEndian.PutUint16(b[18:], uint16(machine))
	case "darwin-amd64", "darwin-arm64":
		cpu := map[string]macho.Cpu{"darwin-amd64": macho.CpuAmd64, "darwin-arm64": macho.CpuArm64}[platform]
		binary.LittleEndian.PutUint32(b, macho.Magic64)
		binary.LittleEndian.PutUint32(b[4:], uint32(cpu))
		binary.LittleEndian.PutUint32(b[12:], uint32(macho.TypeExec))
	}
	return b
}

// packed is a gzipped tar of files.
func packed(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	out := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(files[name]))})
		if err == nil {
			_, err = out.Write(files[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// archiveOf is the archive of a platform with the program of another.
func archiveOf(t *testing.T, folder, of string) []byte {
	t.Helper()
	files := map[string][]byte{folder + "/cnibench": program(of)}
	for _, name := range []string{"LICENSE", "man/cnibench-run.1.gz", "completions/cnibench.bash", "completions/_cnibench", "completions/cnibench.fish"} {
		files[folder+"/"+name] = []byte("x")
	}
	return packed(t, files)
}

// built is a folder as scripts/dist.sh leaves it, and the sum of each archive.
func built(t *testing.T) (dir string, sums map[string]string) {
	t.Helper()
	dir, sums = t.TempDir(), map[string]string{}
	var text strings.Builder
	for _, p := range platforms() {
		name := "cnibench-0.1.0-" + p + ".tar.gz"
		data := archiveOf(t, strings.TrimSuffix(name, ".tar.gz"), p)
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		sums[name] = fmt.Sprintf("%x", sha256.Sum256(data))
		fmt.Fprintf(&text, "%s  %s\n", sums[name], name)
	}
	fmt.Fprintf(&text, "%064d  cnibench-0.1.0-1.x86_64.rpm\n", 2)
	if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, "0.1.0", ""); err != nil {
		t.Fatal(err)
	}
	return dir, sums
}

// krewManifest is what krew reads of a manifest (krew.googlecontainertools.github.com/v1alpha2).
type krewManifest struct {
	APIVersion string                `json:"apiVersion"`
	Kind       string                `json:"kind"`
	Metadata   struct{ Name string } `json:"metadata"`
	Spec       struct {
		Version          string         `json:"version"`
		Homepage         string         `json:"homepage"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description"`
		Caveats          string         `json:"caveats"`
		Platforms        []krewPlatform `json:"platforms"`
	} `json:"spec"`
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string                      `json:"uri"`
	SHA256 string                      `json:"sha256"`
	Files  []struct{ From, To string } `json:"files"`
	Bin    string                      `json:"bin"`
}

// TestKrewManifest: the manifest has only fields that krew knows, an entry for each
// platform with the archive's checksum, and a program that the archive has.
func TestKrewManifest(t *testing.T) {
	dir, sums := built(t)
	text, err := os.ReadFile(filepath.Join(dir, "cnibench.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m krewManifest
	if err := yaml.UnmarshalStrict(text, &m); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata.Name != "cnibench" || m.Spec.Version != "v0.1.0" {
		t.Errorf("the manifest is for %+v", m)
	}
	if n := len(m.Spec.ShortDescription); n == 0 || n > 50 || strings.HasSuffix(m.Spec.ShortDescription, ".") {
		t.Errorf("the short description has %d characters, want at most 50 without a full stop: %q", n, m.Spec.ShortDescription)
	}
	var got []string
	for _, p := range m.Spec.Platforms {
		platform := p.Selector.MatchLabels["os"] + "-" + p.Selector.MatchLabels["arch"]
		got = append(got, platform)
		name := "cnibench-0.1.0-" + platform + ".tar.gz"
		if want := "https://github.com/cnibench/cnibench/releases/download/v0.1.0/" + name; p.URI != want || p.SHA256 != sums[name] {
			t.Errorf("%s: %s with %s, want %s with %s", platform, p.URI, p.SHA256, want, sums[name])
		}
		if p.Bin != "cnibench" || p.Files[0].From != "cnibench-0.1.0-"+platform+"/cnibench" || p.Files[0].To != "." {
			t.Errorf("%s: the program is %s of %+v", platform, p.Bin, p.Files)
		}
	}
	if !slices.Equal(got, platforms()) {
		t.Errorf("platforms are %q, want %q", got, platforms())
	}
}

// TestFormula: the formula has each archive with its checksum under its system and
// processor, its blocks are closed, and Ruby accepts it where it is installed.
func TestFormula(t *testing.T) {
	dir, sums := built(t)
	path := filepath.Join(dir, "cnibench.rb")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	opening := regexp.MustCompile(`^(class|def) | do$`)
	var open, seen []string
	url := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		value := regexp.MustCompile(`"(.*)"`).FindStringSubmatch(line)
		switch {
		case opening.MatchString(line):
			open = append(open, strings.TrimSuffix(line, " do"))
		case line == "end":
			if len(open) == 0 {
				t.Fatalf("an end without a beginning:\n%s", text)
			}
			open = open[:len(open)-1]
		case strings.HasPrefix(line, "url "):
			url = filepath.Base(value[1])
		case strings.HasPrefix(line, "sha256 "):
			if sums[url] != value[1] {
				t.Errorf("%s has %s, want %s", url, value[1], sums[url])
			}
			seen = append(seen, strings.Join(open[1:], " ")+": "+url)
		}
	}
	if len(open) != 0 {
		t.Errorf("not closed: %q", open)
	}
	want := []string{
		"on_macos on_intel: cnibench-0.1.0-darwin-amd64.tar.gz", "on_macos on_arm: cnibench-0.1.0-darwin-arm64.tar.gz",
		"on_linux on_intel: cnibench-0.1.0-linux-amd64.tar.gz", "on_linux on_arm: cnibench-0.1.0-linux-arm64.tar.gz",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the formula has %q, want %q", seen, want)
	}
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		t.Log("ruby is not installed: only the structure is checked")
		return
	}
	r := exec.NewRunner()
	defer r.Close()
	if _, err := r.Run(t.Context(), exec.Cmd{Argv: []string{ruby, "-c", path}}); err != nil {
		t.Error(err)
	}
}

func TestReleaseRefusals(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir, "0.1.0", ""); err == nil || !strings.Contains(err.Error(), "make dist") {
		t.Errorf("without SHA256SUMS: %v", err)
	}
	sum := strings.Repeat("0", 64)
	for text, want := range map[string]string{
		sum + "  cnibench_0.1.0-1_amd64.deb\n":              "no archive",
		sum + "  cnibench-0.2.0-linux-amd64.tar.gz\n":       "not of version 0.1.0",
		sum[:63] + "  cnibench-0.1.0-linux-amd64.tar.gz\n":  "no archive",
		sum + "  cnibench-0.1.0-windows-amd64.tar.gz\n":     "no archive",
		sum + "  other-cnibench-0.1.0-linux-amd64.tar.gz\n": "no archive",
	} {
		if _, err := archives(text, "0.1.0"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// deb is a deb (deb(5)) with a control file and the files of a package.
func deb(t *testing.T, architecture, platform string, without string) []byte {
	t.Helper()
	files := map[string][]byte{"./usr/bin/cnibench": program(platform)}
	for _, name := range []string{"man/man1/cnibench.1.gz", "man/man1/cnibench-run.1.gz", "bash-completion/completions/cnibench",
		"zsh/vendor-completions/_cnibench", "fish/vendor_completions.d/cnibench.fish", "doc/cnibench/copyright"} {
		if name != without {
			files["./usr/share/"+name] = []byte("x")
		}
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, entry := range []struct {
		name string
		data []byte
	}{
		{"debian-binary", []byte("2.0\n")},
		{"control.tar.gz", packed(t, map[string][]byte{"./control": []byte("Package: cnibench\nArchitecture: " + architecture + "\n")})},
		{"data.tar.gz", packed(t, files)},
	} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", entry.name, 0, 0, 0, "100644", len(entry.data))
		b.Write(entry.data)
		if len(entry.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// apk is two gzipped tars, one after the other, the first without the end of an archive.
func apk(t *testing.T, architecture, platform string) []byte {
	t.Helper()
	files := map[string][]byte{"usr/bin/cnibench": program(platform)}
	for _, name := range []string{"man/man1/cnibench.1.gz", "man/man1/cnibench-run.1.gz", "bash-completion/completions/cnibench",
		"zsh/site-functions/_cnibench", "fish/vendor_completions.d/cnibench.fish", "doc/cnibench/copyright"} {
		files["usr/share/"+name] = []byte("x")
	}
	info := packed(t, map[string][]byte{".PKGINFO": []byte("pkgname = cnibench\narch = " + architecture + "\n")})
	in, err := gzip.NewReader(bytes.NewReader(info))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	if _, err := zip.Write(whole[:len(whole)-1024]); err != nil { // the end is two empty blocks
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), packed(t, files)...)
}

// TestPackagesAreForTheirPlatform: a program of another architecture or system, a package
// that names another architecture, and a missing file are found, also for arm64, which no
// test runs.
func TestPackagesAreForTheirPlatform(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"cnibench_0.1.0-1_arm64.deb", deb(t, "arm64", "linux-arm64", ""), ""},
		{"cnibench_0.1.0-1_arm64.deb", deb(t, "arm64", "linux-amd64", ""), "EM_X86_64, want EM_AARCH64"},
		{"cnibench_0.1.0-1_arm64.deb", deb(t, "amd64", "linux-arm64", ""), `no line "Architecture: arm64"`},
		{"cnibench_0.1.0-1_amd64.deb", deb(t, "amd64", "linux-amd64", "man/man1/cnibench-run.1.gz"), "no ./usr/share/man/man1/cnibench-run.1.gz"},
		{"cnibench_0.1.0-1_amd64.deb", []byte("no deb"), "no ar archive"},
		{"cnibench_0.1.0-r1_aarch64.apk", apk(t, "aarch64", "linux-arm64"), ""},
		{"cnibench_0.1.0-r1_aarch64.apk", apk(t, "aarch64", "linux-amd64"), "EM_X86_64, want EM_AARCH64"},
		{"cnibench_0.1.0-r1_aarch64.apk", apk(t, "x86_64", "linux-arm64"), `no line "arch = aarch64"`},
		{"cnibench-0.1.0-linux-arm64.tar.gz", archiveOf(t, "cnibench-0.1.0-linux-arm64", "linux-arm64"), ""},
		{"cnibench-0.1.0-darwin-arm64.tar.gz", archiveOf(t, "cnibench-0.1.0-darwin-arm64", "linux-arm64"), "not for macOS"},
		{"cnibench-0.1.0-darwin-arm64.tar.gz", archiveOf(t, "cnibench-0.1.0-darwin-arm64", "darwin-amd64"), "want CpuArm64"},
		{"cnibench-0.1.0-linux-arm64.tar.gz", archiveOf(t, "cnibench", "linux-arm64"), "no cnibench-0.1.0-linux-arm64/cnibench"},
		{"cnibench-0.1.0-linux-riscv64.tar.gz", nil, "no known architecture"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.name), c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		err := check(dir, strings.Repeat("0", 64)+"  "+c.name+"\n")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
