package netfilter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var errCounters = errors.New("no counters: list them with --counters")

// ParseLegacy reads what iptables-legacy-save --counters prints.
func ParseLegacy(text string) (Ruleset, error) {
	var r Ruleset
	table := ""
	at := map[string]int{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		var err error
		switch {
		case line == "" || strings.HasPrefix(line, "#") || line == "COMMIT":
		case strings.HasPrefix(line, "*"):
			table, at = "legacy "+line[1:], map[string]int{}
		case strings.HasPrefix(line, ":"):
			var c Chain
			if c, err = parseChain(table, line[1:]); err == nil {
				at[c.Name] = len(r.Chains)
				r.Chains = append(r.Chains, c)
			}
		default:
			var name string
			var one Rule
			if name, one, err = parseRule(line); err == nil {
				i, ok := at[name]
				if !ok {
					err = fmt.Errorf("chain %s does not exist", name)
					break
				}
				r.Chains[i].Rules = append(r.Chains[i].Rules, one)
			}
		}
		if err != nil {
			return Ruleset{}, fmt.Errorf("rules, line %d: %w: %.200q", n, err, line)
		}
	}
	r.resolve()
	return r, nil
}

// resolve leaves jumps to those targets that are chains of the same table.
func (r Ruleset) resolve() {
	chains := map[key]bool{}
	for _, c := range r.Chains {
		chains[key{c.Table, c.Name}] = true
	}
	for _, c := range r.Chains {
		for i := range c.Rules {
			if one := &c.Rules[i]; one.To != "" && !chains[key{c.Table, one.To}] {
				one.Verdict, one.To = Target(one.To), ""
			}
		}
	}
}

// parseChain reads "FORWARD ACCEPT [12:3456]"; a chain of one's own has "-" in
// place of the policy.
func parseChain(table, line string) (Chain, error) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return Chain{}, errCounters
	}
	packets, err := parseCount(fields[2])
	c := Chain{Table: table, Name: fields[0], Base: fields[1] != "-"}
	if c.Base {
		c.Policy = &packets
	}
	return c, err
}

// parseRule reads "[12:3456] -A FORWARD -s 10.0.0.0/8 -j ACCEPT".
func parseRule(line string) (name string, r Rule, err error) {
	count, spec, ok := strings.Cut(line, " ")
	if !ok || !strings.HasPrefix(count, "[") {
		return "", r, errCounters
	}
	packets, err := parseCount(count)
	if err != nil {
		return "", r, err
	}
	words := strings.Fields(spec)
	if len(words) < 2 || words[0] != "-A" {
		return "", r, errors.New("no rule")
	}
	r = Rule{ID: spec, Packets: &packets}
	for i, w := range words[:len(words)-1] {
		switch w {
		case "-j":
			r.Verdict, r.To = Jump, words[i+1]
		case "-g":
			r.Verdict, r.To = Goto, words[i+1]
		}
	}
	return words[1], r, nil
}

func parseCount(text string) (uint64, error) {
	packets, _, ok := strings.Cut(strings.Trim(text, "[]"), ":")
	if !ok {
		return 0, errCounters
	}
	return strconv.ParseUint(packets, 10, 64)
}

// Target is where a packet goes on after one of iptables' targets
// (iptables-extensions(8)). Those that are not named let it go on.
func Target(name string) Verdict {
	switch name {
	case "ACCEPT", "DROP", "REJECT", "QUEUE", "NFQUEUE", "DNAT", "SNAT", "MASQUERADE", "REDIRECT", "NETMAP", "TPROXY", "SYNPROXY", "MIRROR":
		return Final
	case "RETURN":
		return Return
	}
	return Next
}
