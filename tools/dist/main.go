// Command dist packs one architecture of a release: a deb, an rpm and an apk from a
// folder with the program, its man pages and its completions. scripts/dist.sh calls it.
// The same files, version and time give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// release is what to pack.
type release struct {
	stage   string    // the folder with what scripts/dist.sh built
	version string    // "0.1.0"
	arch    string    // Go's name of the architecture
	built   time.Time // the time of every file and of the package
}

func main() {
	var r release
	var out string
	var epoch int64
	flag.StringVar(&r.stage, "stage", "", "the folder with cnibench, LICENSE, man/ and completions/")
	flag.StringVar(&r.version, "version", "", "the version, such as 0.1.0")
	flag.StringVar(&r.arch, "arch", "", "the architecture: amd64 or arm64")
	flag.Int64Var(&epoch, "epoch", 0, "the time of all files, in seconds since 1970")
	flag.StringVar(&out, "out", ".", "the folder to write packages to")
	flag.Parse()
	r.built = time.Unix(epoch, 0).UTC()
	for _, format := range []string{"deb", "rpm", "apk"} {
		if err := r.pack(format, out); err != nil {
			fmt.Fprintf(os.Stderr, "dist: %s for %s: %v\n", format, r.arch, err)
			os.Exit(1)
		}
	}
}

// pack writes the package of one format into a folder, under the name that the
// format's distributions expect.
func (r release) pack(format, out string) error {
	contents, err := r.contents(format)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "cnibench", Arch: r.arch, Platform: "linux", Version: r.version, Release: "1",
		Section: "net", Priority: "optional", Maintainer: "The cnibench authors <cnibench@cnibench.invalid>",
		Description: "measures what Kubernetes pod networks cost\n" +
			"cnibench compares Kubernetes pod networks (CNI plugins) with the bare network under\nthem, and reports how certain each figure is.",
		License: "Apache-2.0", MTime: r.built,
		Overridables: nfpm.Overridables{
			Contents: contents, Umask: 0o022, Recommends: recommends(format),
			RPM: nfpm.RPM{BuildHost: "cnibench.invalid", Compression: "gzip:9"},
			Deb: nfpm.Deb{Compression: "gzip"},
		},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	return errors.Join(packager.Package(info, file), file.Close())
}

// recommends are the packages with what the lab uses, which the program works without:
// report, compare, recommend and runs on clusters need none. An apk has no such field.
func recommends(format string) []string {
	switch format {
	case "deb":
		return []string{"containernetworking-plugins", "iproute2", "iptables", "nftables", "ethtool", "procps"}
	case "rpm":
		return []string{"containernetworking-plugins", "iproute", "iptables", "nftables", "ethtool", "procps-ng"}
	}
	return nil
}

// contents are the files of a package. zsh looks for completions in another folder on
// Debian.
func (r release) contents(format string) (files.Contents, error) {
	zsh := "/usr/share/zsh/site-functions"
	if format == "deb" {
		zsh = "/usr/share/zsh/vendor-completions"
	}
	all := files.Contents{
		r.file("cnibench", "/usr/bin/cnibench", 0o755),
		r.file("LICENSE", "/usr/share/doc/cnibench/copyright", 0o644),
		r.file("completions/cnibench.bash", "/usr/share/bash-completion/completions/cnibench", 0o644),
		r.file("completions/_cnibench", zsh+"/_cnibench", 0o644),
		r.file("completions/cnibench.fish", "/usr/share/fish/vendor_completions.d/cnibench.fish", 0o644),
	}
	pages, err := filepath.Glob(filepath.Join(r.stage, "man", "*.1.gz"))
	if err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("no man pages in %s", filepath.Join(r.stage, "man"))
	}
	for _, page := range pages {
		name := filepath.Base(page)
		all = append(all, r.file("man/"+name, "/usr/share/man/man1/"+name, 0o644))
	}
	return all, nil
}

func (r release) file(source, destination string, mode fs.FileMode) *files.Content {
	return &files.Content{
		Source: filepath.Join(r.stage, source), Destination: destination,
		FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.built, Owner: "root", Group: "root"},
	}
}
