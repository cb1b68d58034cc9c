package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

const (
	mit       = "Permission is hereby granted, free of charge, to any person obtaining a copy\nof this software"
	apache    = "                  Apache License\n           Version 2.0, January 2004"
	twoBSD    = "Redistribution and use in source and binary forms, with or without modification, are permitted"
	isc       = "Permission to use, copy, modify, and/or distribute this software for any\npurpose with or without fee is hereby granted"
	unlicense = "This is free and unencumbered software released into the public domain."
)

func TestClassify(t *testing.T) {
	for text, want := range map[string]string{
		mit: "MIT", apache: "Apache-2.0", twoBSD: "BSD-2-Clause", isc: "ISC", unlicense: "Unlicense",
		twoBSD + " Neither the name of Google Inc.":                       "BSD-3-Clause",
		mit + "\n----\n" + apache:                                         "Apache-2.0 MIT",
		"GNU GENERAL PUBLIC LICENSE Version 3":                            "GPL",
		"GNU LESSER GENERAL PUBLIC LICENSE, a GNU General Public License": "LGPL",
		"GNU AFFERO GENERAL PUBLIC LICENSE":                               "AGPL",
		"Mozilla Public License Version 2.0 … GNU General Public License": "MPL-2.0",
		"All rights reserved.":                                            "",
	} {
		if got := strings.Join(classify(text), " "); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// module is a folder with one package in it, and the line that go list prints of it.
func module(t *testing.T, path, version string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf(`{"ImportPath":%q,"Dir":%q,"Module":{"Path":%q,"Version":%q,"Dir":%q}}`+"\n", path+"/a/b", filepath.Join(dir, "a/b"), path, version, dir)
}

func TestLicencesOf(t *testing.T) {
	for name, c := range map[string]struct {
		files      map[string]string
		want, fail string
	}{
		"the module's":        {map[string]string{"LICENSE": mit, "a/b/x.go": ""}, "MIT", ""},
		"a package's as well": {map[string]string{"LICENSE.txt": mit, "a/b/COPYING": apache}, "Apache-2.0 MIT", ""},
		"one of documents":    {map[string]string{"LICENSE": apache, "LICENSE.docs": "Attribution-ShareAlike 4.0", "a/b/x.go": ""}, "Apache-2.0", ""},
		"one beside":          {map[string]string{"LICENSE": mit, "a/b/x.go": "", "c/LICENSE": "GNU General Public License"}, "MIT", ""},
		"none":                {map[string]string{"README": mit, "a/b/licence.go": mit}, "", "no licence file"},
		"an unknown one":      {map[string]string{"LICENCE": "Ask me.", "a/b/x.go": ""}, "", "no licence that is known"},
		"one not allowed":     {map[string]string{"LICENSE": mit, "a/b/LICENSE": "GNU General Public License"}, "GPL MIT", "licence GPL is not allowed"},
	} {
		packages, err := readPackages(strings.NewReader(module(t, "example.com/m", "v1.0.0", c.files)))
		if err != nil {
			t.Fatal(err)
		}
		got, findings := licencesOf(packages["example.com/m@v1.0.0"])
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if text := fmt.Sprint(findings); (len(findings) > 0) != (c.fail != "") || !strings.Contains(text, c.fail) {
			t.Errorf("%s: %s, want %q", name, text, c.fail)
		}
	}
}

// A module of the build information that go list does not name has no folder to look in.
func TestAModuleWithoutFoldersIsAFinding(t *testing.T) {
	if licences, findings := licencesOf(nil); len(findings) != 1 || len(licences) > 0 {
		t.Errorf("%v, %v", licences, findings)
	}
}

func TestReadPackagesRefuses(t *testing.T) {
	for _, text := range []string{"{", `{"Dir":"/elsewhere","Module":{"Path":"m","Dir":"/m"}}`} {
		if _, err := readPackages(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	got, err := readPackages(strings.NewReader(`{"Standard":true,"Dir":"/go"}{"Dir":"/x","Module":{"Path":"x","Dir":"/x","Main":true}}`))
	if err != nil || len(got) > 0 {
		t.Errorf("of Go's own and our own packages: %v (%v)", got, err)
	}
}

// The modules of this test's own binary stand in for those of the program: each needs a
// licence, and the SBOM has each.
func TestRun(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("this test has no build information")
	}
	var packages strings.Builder
	for _, dep := range info.Deps {
		packages.WriteString(module(t, dep.Path, dep.Version, map[string]string{"LICENSE": mit, "a/b/x.go": ""}))
	}
	dir := t.TempDir()
	bundle, sbom := filepath.Join(dir, "LICENSES.txt"), filepath.Join(dir, "sbom.json")
	for text, want := range map[string]int{"d3-array 3.2.5 (ISC), @x/y 1.0.0 (BSD-3-Clause)\n": 0, "x 1.0.0 (GPL-3.0)\n": 1, "": 1} {
		if err := os.WriteFile(bundle, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		args := []string{"-binary", program, "-bundle", bundle, "-sbom", sbom}
		if got := run(args, strings.NewReader(packages.String()), &out, &errs); got != want {
			t.Errorf("%q: status %d, want %d: %s", text, got, want, errs.String())
		}
	}
	if got := run([]string{"-binary", program}, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}); got != 2 {
		t.Errorf("without an SBOM: status %d, want 2", got)
	}
	text, err := os.ReadFile(sbom)
	if err != nil {
		t.Fatal(err)
	}
	var doc cdxDocument
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Components) != len(info.Deps)+3 || doc.Format != "CycloneDX" {
		t.Errorf("%d components, want %d, and Go's own, and 2 of the bundle", len(doc.Components), len(info.Deps))
	}
	if !slices.ContainsFunc(doc.Components, func(c cdxComponent) bool { return c.URL == "pkg:npm/%40x/y@1.0.0" }) {
		t.Errorf("the bundle's are missing: %s", text)
	}
}
