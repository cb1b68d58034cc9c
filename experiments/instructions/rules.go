package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab"
)

// rules are some that no packet of the traffic matches, which the client's node
// has to look at for each packet that it forwards.
type rules struct {
	Kind   string `json:",omitempty"` // "iptables-legacy", "iptables-nft", "nft"; "" adds none
	Count  int    `json:",omitempty"`
	Chains int    `json:",omitempty"` // so many chains have them, in equal parts; 0 is the chain FORWARD itself
}

func (r rules) String() string {
	switch {
	case r.Kind == "":
		return ""
	case r.Chains > 0:
		return fmt.Sprintf("%d rules of %s in %d chains", r.Count, r.Kind, r.Chains)
	default:
		return fmt.Sprintf("%d rules of %s", r.Count, r.Kind)
	}
}

// add puts the rules on the node of a cell's client.
func (r rules) add(ctx context.Context, runner *exec.Runner, l *lab.Lab, cell result.Cell) error {
	if r.Kind == "" {
		return nil
	}
	node, err := clientNode(l, cell)
	if err != nil {
		return err
	}
	c := exec.Cmd{Argv: []string{r.Kind + "-restore", "--noflush"}, NetNS: node.Path, Stdin: strings.NewReader(r.iptables())}
	if r.Kind == "nft" {
		c.Argv, c.Stdin = []string{"nft", "-f", "-"}, strings.NewReader(r.nft())
	}
	_, err = runner.Run(ctx, c)
	return err
}

// clientNode is the node of a cell's client.
func clientNode(l *lab.Lab, cell result.Cell) (netns.NS, error) {
	cell.Path = result.PathHostToHost
	nodes, err := l.Sites(cell)
	return nodes.Client, err
}

// source is an address of those for documentation (RFC 5737), which nobody has.
const source = "203.0.113.7"

// iptables is what iptables-restore takes.
func (r rules) iptables() string {
	var b strings.Builder
	b.WriteString("*filter\n")
	for i := range r.Chains {
		fmt.Fprintf(&b, ":cnb-%d - [0:0]\n", i)
	}
	for i := range r.Chains {
		fmt.Fprintf(&b, "-A FORWARD -j cnb-%d\n", i)
	}
	for i := range r.Count {
		chain := "FORWARD"
		if r.Chains > 0 {
			chain = fmt.Sprintf("cnb-%d", i*r.Chains/r.Count)
		}
		fmt.Fprintf(&b, "-A %s -s %s/32 -j DROP\n", chain, source)
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// nft is a table of its own, as nftables has no built-in chain FORWARD.
func (r rules) nft() string {
	var b strings.Builder
	b.WriteString("table ip cnb {\n")
	for i := range r.Chains {
		fmt.Fprintf(&b, "chain cnb-%d {\n%s}\n", i, strings.Repeat(" ip saddr "+source+" drop\n", r.Count/r.Chains))
	}
	b.WriteString("chain forward {\n type filter hook forward priority filter;\n")
	for i := range r.Chains {
		fmt.Fprintf(&b, " jump cnb-%d\n", i)
	}
	if r.Chains == 0 {
		b.WriteString(strings.Repeat(" ip saddr "+source+" drop\n", r.Count))
	}
	b.WriteString("}\n}\n")
	return b.String()
}
