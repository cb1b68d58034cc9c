// Command supplychain checks what is linked into a binary. It reads the packages from
// stdin, as `go list -deps -json=ImportPath,Dir,Module,Standard .` prints them, and the
// modules from the binary's build information. It fails where a licence is missing,
// unknown or not allowed, and writes a software bill of materials (SBOM, CycloneDX 1.6).
//
//	go list -deps -json=ImportPath,Dir,Module,Standard . | supplychain -binary FILE -bundle web/LICENSES.txt -sbom FILE
//
// It needs no network. Its exit status is 0, 1 for a finding, 2 for wrong usage.
package main

import (
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main with its arguments and streams.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("supplychain", flag.ContinueOnError)
	flags.SetOutput(stderr)
	binary := flags.String("binary", "", "the program whose build information is read")
	bundle := flags.String("bundle", "", "the licences of the bundled script (web/LICENSES.txt)")
	sbom := flags.String("sbom", "", "where to write the SBOM")
	if err := flags.Parse(args); err != nil || *binary == "" || *bundle == "" || *sbom == "" || flags.NArg() > 0 {
		_, _ = fmt.Fprintln(stderr, "supplychain: want -binary, -bundle and -sbom, each with a file, and nothing else")
		return 2
	}
	all, version, err := inventory(stdin, *binary, *bundle)
	if err == nil {
		err = write(*sbom, version, all)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "supplychain: %v\n", err)
		return 1
	}
	_, _ = fmt.Fprint(stdout, counts(all), "SBOM: ", *sbom, "\n")
	return 0
}

// inventory is everything that is linked, with its licences. The error has a line for each
// finding.
func inventory(packages io.Reader, binary, bundle string) ([]component, string, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, "", err
	}
	folders, err := readPackages(packages)
	if err != nil {
		return nil, "", err
	}
	all := []component{standardLibrary(info.GoVersion)}
	var findings []error
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		c := component{kind: "golang", name: dep.Path, version: dep.Version, sum: dep.Sum}
		var problems []error
		c.licences, problems = licencesOf(folders[dep.Path+"@"+dep.Version])
		for _, p := range problems {
			findings = append(findings, fmt.Errorf("%s@%s: %w", dep.Path, dep.Version, p))
		}
		all = append(all, c)
	}
	text, err := os.ReadFile(bundle)
	if err != nil {
		return nil, "", err
	}
	bundled := readBundle(string(text))
	if len(bundled) == 0 {
		findings = append(findings, fmt.Errorf("%s names no package", bundle))
	}
	for _, c := range bundled {
		if err := allow(c.licences); err != nil {
			findings = append(findings, fmt.Errorf("%s %s in %s: %w", c.name, c.version, bundle, err))
		}
	}
	return append(all, bundled...), info.Main.Version, errors.Join(findings...)
}

// counts has one line for each licence: how many components have it.
func counts(all []component) string {
	n := map[string]int{}
	for _, c := range all {
		n[strings.Join(c.licences, " and ")]++
	}
	var lines []string
	for licence, count := range n {
		lines = append(lines, fmt.Sprintf("%4d  %s\n", count, licence))
	}
	slices.Sort(lines)
	slices.Reverse(lines)
	return fmt.Sprintf("%d components are linked:\n%s", len(all), strings.Join(lines, ""))
}
