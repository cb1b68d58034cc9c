package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// allowed are the licences (SPDX identifiers) that may be linked into a program under
// Apache-2.0: their conditions are at most that notices are kept.
func allowed() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unlicense"}
}

// allow returns an error that names the first licence that is not allowed.
func allow(licences []string) error {
	for _, l := range licences {
		if !slices.Contains(allowed(), l) {
			return fmt.Errorf("licence %s is not allowed (allowed: %s): replace the dependency, or decide about it in internal/repo/supplychain/licence.go", l, strings.Join(allowed(), ", "))
		}
	}
	return nil
}

// folders are those that may hold the licences of a module: of each of its packages that
// is linked, and all above it up to the module's own.
type folders map[string]bool

// readPackages reads what go list prints; the keys are "module@version".
func readPackages(in io.Reader) (map[string]folders, error) {
	type module struct {
		Path, Version, Dir string
		Main               bool
		Replace            *module
	}
	all := map[string]folders{}
	for dec := json.NewDecoder(in); ; {
		var p struct {
			ImportPath, Dir string
			Standard        bool
			Module          *module
		}
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("what go list printed: %w", err)
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		m := p.Module
		if m.Replace != nil {
			m = m.Replace
		}
		key := m.Path + "@" + m.Version
		if all[key] == nil {
			all[key] = folders{}
		}
		within, err := filepath.Rel(m.Dir, p.Dir)
		if err != nil || strings.HasPrefix(within, "..") {
			return nil, fmt.Errorf("what go list printed: %s is not in %s", p.Dir, m.Dir)
		}
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			all[key][dir] = true
			if dir == m.Dir {
				break
			}
		}
	}
	return all, nil
}

// licenceFile is what the names of licence files are like.
var licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)s?([._-].*)?$`)

// notLinked are the endings of files that are sources, or the licence of documents, of which
// nothing is linked.
func notLinked() []string { return []string{".go", ".docs"} }

// licencesOf reads the licence files in folders. It returns the licences in order, and one
// error for each finding: no file at all, an unknown text, a licence that is not allowed.
func licencesOf(in folders) ([]string, []error) {
	var found []string
	var findings []error
	n := 0
	for dir := range in {
		entries, err := os.ReadDir(dir)
		if err != nil {
			findings = append(findings, err)
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) || slices.Contains(notLinked(), filepath.Ext(e.Name())) {
				continue
			}
			n++
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			licences := classify(string(text))
			if err == nil && len(licences) == 0 {
				err = errors.New("no licence that is known here: read it, and add it to internal/repo/supplychain/licence.go if it is one that we may link")
			}
			if err == nil {
				err = allow(licences)
			}
			if err != nil {
				findings = append(findings, fmt.Errorf("%s: %w", e.Name(), err))
			}
			found = append(found, licences...)
		}
	}
	if n == 0 {
		findings = append(findings, errors.New("no licence file in the folders of its linked packages: without one nobody may use it"))
	}
	slices.Sort(found)
	return slices.Compact(found), findings
}

// classify names the licences (SPDX identifiers) whose texts are in a file; none where it
// knows none of them.
func classify(text string) []string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	has := func(phrase string) bool { return strings.Contains(text, phrase) }
	var all []string
	add := func(id string, there bool) {
		if there {
			all = append(all, id)
		}
	}
	add("Apache-2.0", has("apache license version 2.0") || has("apache license, version 2.0"))
	add("MIT", has("permission is hereby granted, free of charge, to any person obtaining a copy"))
	add("ISC", has("permission to use, copy, modify, and distribute this software for any purpose with or without fee") ||
		has("permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"))
	add("Unlicense", has("this is free and unencumbered software released into the public domain"))
	bsd := has("redistribution and use in source and binary forms")
	three := has("neither the name") || has("to endorse or promote products")
	add("BSD-3-Clause", bsd && three)
	add("BSD-2-Clause", bsd && !three)
	mozilla := has("mozilla public license")
	add("MPL-2.0", mozilla)
	// The Mozilla licence names these as others that a file may be under.
	add("AGPL", !mozilla && has("gnu affero general public license"))
	add("LGPL", !mozilla && has("gnu lesser general public license"))
	add("GPL", !mozilla && has("gnu general public license") && !has("gnu lesser general public license") && !has("gnu affero general public license"))
	return all
}

// bundled is how web/LICENSES.txt names what is in the bundle: "d3-array 3.2.5 (ISC)".
var bundled = regexp.MustCompile(`^(@?[a-z0-9][a-z0-9._/-]*) (\d[0-9A-Za-z.+-]*) \(([A-Za-z0-9.+ -]+)\)$`)

// readBundle reads the names, versions and licences of bundled npm packages.
func readBundle(text string) []component {
	var all []component
	for line := range strings.Lines(text) {
		for item := range strings.SplitSeq(strings.TrimSpace(line), ", ") {
			if m := bundled.FindStringSubmatch(item); m != nil {
				all = append(all, component{kind: "npm", name: m[1], version: m[2], licences: []string{m[3]}})
			}
		}
	}
	return all
}
