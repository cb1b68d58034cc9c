// Package papers carries the published studies that cnibench reproduces: one
// folder each, of data alone. docs/adding-a-paper.md explains the files.
package papers

import "embed"

// FS has a folder for each paper.
//
//go:embed */*.yaml
var FS embed.FS
