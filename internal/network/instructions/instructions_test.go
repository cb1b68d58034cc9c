package instructions

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// What the program carries is what the document says.
func TestInstructionsAreThoseOfTheDocument(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/instructions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "| network |")
	header, rows, _ := strings.Cut(table, "\n")
	columns := strings.Split(strings.Trim(header, "| "), "|")
	cell := regexp.MustCompile(`^(\d+) \(([\d.]+) %\)$`)
	rowsSeen := 0
	for row := range strings.Lines(rows) {
		if !strings.HasPrefix(row, "|") {
			break
		}
		if strings.HasPrefix(row, "|---") {
			continue
		}
		fields := strings.Split(strings.Trim(strings.TrimSpace(row), "| "), "|")
		rowsSeen++
		for i, c := range columns {
			workload, placement, _ := strings.Cut(strings.TrimSpace(c), " ")
			m := cell.FindStringSubmatch(strings.TrimSpace(fields[i+1]))
			if m == nil {
				t.Fatalf("%q is no count", fields[i+1])
			}
			want, _ := strconv.ParseFloat(m[1], 64)
			variation, _ := strconv.ParseFloat(m[2], 64)
			name := strings.TrimSpace(fields[0])
			got, ok := Of(name, workload, placement)
			if ok != (variation < 2) || ok && got != want {
				t.Errorf("%s %s %s: %g %v, the document says %g ± %g %%; write internal/network/instructions/instructions.csv anew", name, workload, placement, got, ok, want, variation)
			}
		}
	}
	if rowsSeen < 30 {
		t.Errorf("%d networks in the document", rowsSeen)
	}
	if _, ok := Of("flannel/vxlan", "tcp_crr", "inter-host"); ok {
		t.Error("a workload that was not counted has a count")
	}
}
