package bpf

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestObjectsAreOfTheseSources: SHA256SUMS is written by make bpf, so a source
// that was changed, or an object that was not made by it, shows. No compiler is
// needed for that.
func TestObjectsAreOfTheseSources(t *testing.T) {
	var files, want []string
	for _, pattern := range []string{"*.c", "*.h", "*.o"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("%x  %s", sha256.Sum256(data), file))
	}
	sums, err := os.ReadFile("SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(sums)), "\n")
	slices.SortFunc(got, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	if !slices.Equal(got, want) {
		t.Errorf("sources and objects differ from SHA256SUMS: run make bpf\nhave %s\nsums %s", strings.Join(want, "\n     "), strings.Join(got, "\n     "))
	}
}
