// Command release writes what package managers need to install a release: a krew manifest
// for kubectl and a Homebrew formula, with the checksums of the archives that
// scripts/dist.sh built. Before, it checks that every package has its files, and a program
// for the platform in its name. It publishes nothing.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

//go:embed krew.yaml.tmpl
var krewTemplate string

//go:embed formula.rb.tmpl
var formulaTemplate string

// release is what the templates get.
type release struct {
	Version string // "0.1.0"
	// Base is the address of the folder with the archives.
	Base     string
	Archives []archive
}

// archive is one archive of a release.
type archive struct {
	OS, Arch string // Go's names: "darwin", "arm64"
	Name     string // "cnibench-0.1.0-darwin-arm64.tar.gz"
	Folder   string // the only folder in it
	SHA256   string
}

func main() {
	dir := flag.String("dir", "dist", "the folder with the archives and SHA256SUMS")
	version := flag.String("version", "", "the version, such as 0.1.0")
	base := flag.String("base", "", "the address of the archives (default: that of the version's release on GitHub)")
	flag.Parse()
	if err := run(*dir, *version, *base); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// run checks what is in the packages of a folder and writes cnibench.yaml and cnibench.rb
// into it.
func run(dir, version, base string) error {
	if base == "" {
		base = "https://github.com/cnibench/cnibench/releases/download/v" + version
	}
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		return fmt.Errorf("%w\nbuild the archives first: make dist", err)
	}
	if err := check(dir, string(sums)); err != nil {
		return err
	}
	r := release{Version: version, Base: base}
	if r.Archives, err = archives(string(sums), version); err != nil {
		return err
	}
	for name, text := range map[string]string{"cnibench.yaml": krewTemplate, "cnibench.rb": formulaTemplate} {
		out, err := r.render(name, text)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), out, 0o644); err != nil {
			return err
		}
	}
	return nil
}

var sumLine = regexp.MustCompile(`^([0-9a-f]{64})  (cnibench-(.+)-(linux|darwin)-(amd64|arm64))\.tar\.gz$`)

// archives reads what sha256sum printed; files that are no archives are left out.
func archives(sums, version string) ([]archive, error) {
	var all []archive
	for line := range strings.Lines(sums) {
		m := sumLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		if m[3] != version {
			return nil, fmt.Errorf("SHA256SUMS has %s.tar.gz, which is not of version %s", m[2], version)
		}
		all = append(all, archive{OS: m[4], Arch: m[5], Name: m[2] + ".tar.gz", Folder: m[2], SHA256: m[1]})
	}
	if len(all) == 0 {
		return nil, errors.New("SHA256SUMS lists no archive of a known platform")
	}
	return all, nil
}

// render fills a template in.
func (r release) render(name, text string) ([]byte, error) {
	t, err := template.New(name).Parse(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, r)
	return b.Bytes(), err
}

// Systems are those that the release has archives for, in the formula's words.
func (r release) Systems() []system {
	var all []system
	for _, s := range []system{{Block: "on_macos", os: "darwin"}, {Block: "on_linux", os: "linux"}} {
		for _, a := range r.Archives {
			if a.OS == s.os {
				s.Archives = append(s.Archives, a)
			}
		}
		if s.Archives != nil {
			all = append(all, s)
		}
	}
	return all
}

// system is the archives of one operating system.
type system struct {
	Block    string
	os       string
	Archives []archive
}

// CPU is the architecture's block of a formula.
func (a archive) CPU() string {
	if a.Arch == "arm64" {
		return "on_arm"
	}
	return "on_intel"
}
