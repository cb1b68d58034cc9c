package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/network/inspect"
	"github.com/cnibench/cnibench/internal/testbed/lab"
)

// ruleReading is what the probe netfilter costs on a node.
type ruleReading struct {
	// Plain and Counted are instructions per packet that passes a base chain of
	// nf_tables, before and after the probe made that count the packets that no rule matches.
	Plain, Counted []float64
	// Rules is how many the node has when they are read, ReadNanoseconds what that
	// takes each time.
	Rules           int
	ReadNanoseconds []int64
}

// ruleRounds is how often each is counted.
const ruleRounds = 5

// countReading counts what the reading of a node's rules costs: of so many rules, and
// for each packet of a pair whose way is over that node.
func countReading(ctx context.Context, r *exec.Runner, l *lab.Lab, p probePlan, pair pair) (got ruleReading, err error) {
	cell := ladderTraffic().cell(setting{Network: p.Network})
	if err := (rules{Kind: "nft", Count: 1}).add(ctx, r, l, cell); err != nil {
		return got, err
	}
	node, err := clientNode(l, cell)
	if err != nil {
		return got, err
	}
	reader, err := inspect.OpenRules(node)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for _, to := range []*[]float64{&got.Plain, &got.Counted} {
		for round := range 1 + ruleRounds {
			s, err := window(pair, ladderTraffic(), 200, true)
			if err != nil {
				return got, err
			}
			if round > 0 {
				*to = append(*to, s.perPacket())
			}
		}
		if _, err := reader.Read(ctx); err != nil { // from here on they are counted
			return got, err
		}
	}
	many := "table ip cnb-unused {\nchain many {\n" + strings.Repeat(" ip saddr "+source+" counter drop\n", p.Rules) + "}\n}\n"
	if _, err := r.Run(ctx, exec.Cmd{Argv: []string{"nft", "-f", "-"}, NetNS: node.Path, Stdin: strings.NewReader(many)}); err != nil {
		return got, err
	}
	for range ruleRounds {
		found := 0
		took, err := clocked(false, func() error {
			all, err := reader.Read(ctx)
			for _, c := range all.Chains {
				found += len(c.Rules)
			}
			return err
		})
		if err != nil {
			return got, err
		}
		if found < p.Rules {
			return got, fmt.Errorf("%d rules were read, there are %d", found, p.Rules)
		}
		got.Rules, got.ReadNanoseconds = found, append(got.ReadNanoseconds, took)
	}
	return got, nil
}
