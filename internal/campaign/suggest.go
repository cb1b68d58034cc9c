package campaign

import (
	"fmt"
	"strings"
)

// suggest is the hint for an unknown name: the nearest known one, else all.
func suggest(kind, name string, known []string) string {
	best, distance := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k), distance); d < distance {
			best, distance = k, d
		}
	}
	switch {
	case best != "" && distance < len(best):
		return fmt.Sprintf("did you mean %q?", best)
	case len(known) == 0:
		return fmt.Sprintf("no %s is known here", kind)
	default:
		return fmt.Sprintf("known %s: %s", plural(kind), strings.Join(known, ", "))
	}
}

func plural(kind string) string {
	if stem, ok := strings.CutSuffix(kind, "ly"); ok { // families
		return stem + "lies"
	}
	return kind + "s"
}

// editDistance is the number of single-byte insertions, deletions,
// replacements and swaps of neighbours that make a into b (optimal string
// alignment, Damerau 1964), or limit where it is not below that.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	var beforeLast []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforeLast[j-2]+1)
			}
		}
		beforeLast, last = last, row
	}
	return min(last[len(b)], limit)
}
