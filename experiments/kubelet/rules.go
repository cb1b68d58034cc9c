// Package kubelet takes the rules of a kubelet out of those of a node, so that a node of
// the lab can have them too. Every packet of a node passes them.
package kubelet

import "strings"

// Prefix begins the names of the chains that a kubelet makes.
const Prefix = "KUBE-"

// Chains are the lines of what iptables-save printed that make the chains whose names
// begin so, and the jumps to them. The kernel's own chains are left out: restoring them
// would make hooks that the node does not have.
func Chains(saved, prefix string) string {
	var kept []string
	for line := range strings.Lines(saved) {
		words := strings.Fields(line)
		var keep bool
		switch {
		case len(words) == 0:
		case strings.HasPrefix(line, "*"), words[0] == "COMMIT":
			keep = true
		case strings.HasPrefix(line, ":"):
			keep = words[1] == "-" && strings.HasPrefix(line[1:], prefix)
		case words[0] == "-A":
			keep = strings.Contains(line, " "+prefix)
		}
		if keep {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
