package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
)

// component is one thing that is linked.
type component struct {
	kind          string // the package URL's type: "golang", "npm"
	name, version string
	sum           string   // go.sum's hash of the module, "h1:…"; "" where there is none
	licences      []string // SPDX identifiers
}

// standardLibrary is Go's own, which is part of every program and under Go's licence.
func standardLibrary(goVersion string) component {
	version, _, _ := strings.Cut(strings.TrimPrefix(goVersion, "go"), " ")
	return component{kind: "golang", name: "std", version: version, licences: []string{"BSD-3-Clause"}}
}

// url is the component's package URL (purl).
func (c component) url() string {
	escape := strings.NewReplacer("@", "%40", "+", "%2B", " ", "%20")
	return "pkg:" + c.kind + "/" + escape.Replace(c.name) + "@" + escape.Replace(c.version)
}

// The parts of a CycloneDX 1.6 document that are written.
type (
	cdxDocument struct {
		Format     string         `json:"bomFormat"`
		Spec       string         `json:"specVersion"`
		Version    int            `json:"version"`
		Metadata   cdxMetadata    `json:"metadata"`
		Components []cdxComponent `json:"components"`
	}
	cdxMetadata struct {
		Component cdxComponent `json:"component"`
	}
	cdxComponent struct {
		Type       string        `json:"type"`
		Ref        string        `json:"bom-ref"`
		Name       string        `json:"name"`
		Version    string        `json:"version,omitempty"`
		Licences   []cdxLicence  `json:"licenses,omitempty"`
		URL        string        `json:"purl,omitempty"`
		Properties []cdxProperty `json:"properties,omitempty"`
	}
	cdxLicence struct {
		Licence cdxID `json:"license"`
	}
	cdxID struct {
		ID string `json:"id"`
	}
	cdxProperty struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
)

// document is the SBOM's text. It has neither a time nor a serial number: the same program
// gives the same bytes.
func document(version string, all []component) ([]byte, error) {
	doc := cdxDocument{Format: "CycloneDX", Spec: "1.6", Version: 1, Components: []cdxComponent{}}
	doc.Metadata.Component = cdxComponent{Type: "application", Ref: "cnibench", Name: "cnibench", Version: version, Licences: []cdxLicence{{cdxID{"Apache-2.0"}}}}
	for _, c := range all {
		out := cdxComponent{Type: "library", Ref: c.url(), Name: c.name, Version: c.version, URL: c.url()}
		for _, l := range c.licences {
			out.Licences = append(out.Licences, cdxLicence{cdxID{l}})
		}
		if c.sum != "" {
			out.Properties = []cdxProperty{{"cnibench:go.sum", c.sum}}
		}
		doc.Components = append(doc.Components, out)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	err := enc.Encode(doc)
	return text.Bytes(), err
}

func write(path, version string, all []component) error {
	text, err := document(version, all)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
