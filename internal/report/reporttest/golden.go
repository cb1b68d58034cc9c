package reporttest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// DataScript is the element of a page that has its data.
var DataScript = regexp.MustCompile(`(?s)<script type="text/plain" id="data">(.*?)</script>`)

// DataJSON is the data of a page, unpacked.
func DataJSON(t testing.TB, page string) []byte {
	t.Helper()
	m := DataScript.FindStringSubmatch(page)
	if m == nil {
		t.Fatal("the page has no data")
	}
	zipped, err := base64.StdEncoding.DecodeString(m[1])
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// OwnScript is the script of a page.
var OwnScript = regexp.MustCompile(`(?s)<script>.*</script>`)

// Bare is a page without its style and script, and its data in plain text.
func Bare(t testing.TB, page string) string {
	t.Helper()
	data := DataJSON(t, page)
	page = regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(page, "<style></style>")
	page = OwnScript.ReplaceAllString(page, "<script></script>")
	page = regexp.MustCompile(`sha256-.*?&#39;`).ReplaceAllString(page, "sha256-&#39;")
	var lines bytes.Buffer
	if err := json.Indent(&lines, data, "", " "); err != nil {
		t.Fatal(err)
	}
	// A list of numbers or texts is one line.
	short := regexp.MustCompile(`\[\s+([^\[\]{}]*?)\s+\]`).ReplaceAllStringFunc(lines.String(), func(s string) string {
		return strings.Join(strings.Fields(s), " ")
	})
	return DataScript.ReplaceAllLiteralString(page, "<script type=\"text/plain\" id=\"data\">\n"+short+"</script>")
}

// Golden compares what was rendered with a file of testdata, or writes the file.
func Golden(t *testing.T, update bool, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run go test -update", err)
	}
	if string(want) != got {
		if err := os.WriteFile(path+".got", []byte(got), 0o644); err != nil {
			t.Error(err)
		}
		t.Errorf("%s is not what was rendered; see %s.got, or run go test -update", path, path)
	}
}
