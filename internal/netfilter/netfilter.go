// Package netfilter computes from two listings of a node's rules what checked the packets
// between them: how many rules each packet was compared with, in how many chains.
// It is pure: who reads the rules is internal/network/inspect.
package netfilter

import (
	"cmp"
	"errors"
	"fmt"
)

// Ruleset is all rules of a namespace with their counters.
type Ruleset struct{ Chains []Chain }

// Chain is one chain with its rules in order.
type Chain struct {
	// Table distinguishes tables of the same name: "ip filter", "legacy filter".
	Table, Name string
	// Base reports that the kernel enters the chain on its own.
	Base bool
	// Policy is how many packets came to the end of a base chain; nil where the
	// kernel does not count them.
	Policy *uint64
	Rules  []Rule
}

// Rule is what of a rule decides where a packet goes on.
type Rule struct {
	// ID distinguishes it from others of its chain: a handle, or its text.
	ID string
	// Packets is how many matched; nil where the rule has no counter behind its
	// last condition.
	Packets *uint64
	Verdict Verdict
	To      string // the chain of Jump and Goto
}

// Verdict is where a packet goes on that a rule matches.
type Verdict int

// The verdicts.
const (
	Next    Verdict = iota // to the rule behind it
	Final                  // to no rule of this table: ACCEPT, DROP, DNAT …
	Return                 // back to the chain that called this one
	Jump                   // to another chain, and back
	Goto                   // to another chain, and back to this one's caller
	Unknown                // by a map of verdicts, which counts nothing
)

// Crossing is what packets met between two listings.
type Crossing struct {
	// Rules and Chains are how many there are.
	Rules, Chains int
	// Evaluated is how many times a packet was compared with a rule, Entered how
	// many times one entered a chain.
	Evaluated, Entered float64
}

// ErrChanged reports that the rules themselves changed between two listings.
var ErrChanged = errors.New("the rules changed between the two listings")

// ErrNotCounted reports that the counters do not show which way packets took.
var ErrNotCounted = errors.New("packets cannot be followed")

// Between compares two listings. Where the packets cannot be
// followed the error is an ErrNotCounted, and the numbers of rules and chains are
// there all the same.
//
// A rule counts only what it matches. How many came to it follows from what left
// before it; how many entered a base chain from those that came to its end and
// those that left. Of packets that jump to a chain that has several callers, the
// same share is taken to come back to each.
func Between(before, after Ruleset) (Crossing, error) {
	d, err := difference(before, after)
	if err != nil {
		return Crossing{}, err
	}
	w := walk{of: map[key]*chain{}, left: map[key]float64{}, entered: map[key]float64{}}
	for i := range d {
		w.of[d[i].key()] = &d[i]
	}
	w.callers()
	var x Crossing
	var errs error
	for i := range d {
		c := &d[i]
		x.Chains++
		x.Rules += len(c.Rules)
		entered, err := w.enters(c)
		if err != nil {
			errs = cmp.Or(errs, err)
			continue
		}
		x.Entered += entered
		for _, r := range c.Rules {
			x.Evaluated += entered
			if entered == 0 {
				continue // nothing came here: no counter is missed
			}
			gone, err := w.leaves(c, r)
			if err != nil {
				errs = cmp.Or(errs, err)
				break
			}
			entered = max(0, entered-gone)
		}
	}
	if errs != nil {
		x.Evaluated, x.Entered = 0, 0
	}
	return x, errs
}

// chain is one with the packets between two listings.
type chain struct{ Chain }

type key struct{ table, name string }

func (c *chain) key() key { return key{c.Table, c.Name} }

// difference is after with before's counters subtracted.
func difference(before, after Ruleset) ([]chain, error) {
	if len(before.Chains) != len(after.Chains) {
		return nil, ErrChanged
	}
	var out []chain
	for i, c := range after.Chains {
		b := before.Chains[i]
		if b.Table != c.Table || b.Name != c.Name || len(b.Rules) != len(c.Rules) {
			return nil, ErrChanged
		}
		d := chain{Chain{Table: c.Table, Name: c.Name, Base: c.Base}}
		var ok bool
		if d.Policy, ok = less(c.Policy, b.Policy); !ok {
			return nil, ErrChanged
		}
		for k, r := range c.Rules {
			old := b.Rules[k]
			if r.ID != old.ID || r.Verdict != old.Verdict || r.To != old.To {
				return nil, ErrChanged
			}
			if r.Packets, ok = less(r.Packets, old.Packets); !ok {
				return nil, ErrChanged
			}
			d.Rules = append(d.Rules, r)
		}
		out = append(out, d)
	}
	return out, nil
}

// less is a counter's difference, nil where there is none; not ok where it went
// back or came and went.
func less(after, before *uint64) (*uint64, bool) {
	if after == nil || before == nil {
		return nil, after == nil && before == nil
	}
	if *after < *before {
		return nil, false
	}
	d := *after - *before
	return &d, true
}

// walk computes from the counters of matches how many packets came to each rule.
type walk struct {
	of      map[key]*chain
	calls   map[key][]Rule // the rules that lead to a chain
	left    map[key]float64
	entered map[key]float64
}

func (w *walk) callers() {
	w.calls = map[key][]Rule{}
	for k, c := range w.of {
		for _, r := range c.Rules {
			if r.Verdict == Jump || r.Verdict == Goto {
				to := key{k.table, r.To}
				w.calls[to] = append(w.calls[to], r)
			}
		}
	}
}

// enters is how many packets entered a chain: of a base chain, those that came to
// its end and those that left before; of another, those that were sent there.
func (w *walk) enters(c *chain) (float64, error) {
	k := c.key()
	if n, ok := w.entered[k]; ok {
		return n, nil
	}
	w.entered[k] = 0 // a loop of gotos would come back here
	n := 0.0
	if c.Base {
		if c.Policy == nil {
			return 0, fmt.Errorf("%w: chain %s %s does not count the packets that reach its end", ErrNotCounted, c.Table, c.Name)
		}
		found, err := w.foundVerdict(c)
		if err != nil {
			return 0, err
		}
		n = float64(*c.Policy) + found
	} else {
		for _, r := range w.calls[k] {
			if r.Packets == nil {
				return 0, fmt.Errorf("%w: a rule that leads to chain %s %s has no counter", ErrNotCounted, c.Table, c.Name)
			}
			n += float64(*r.Packets)
		}
	}
	w.entered[k] = n
	return n, nil
}

// leaves is how many of the packets that a rule matched never came to the rule
// behind it.
func (w *walk) leaves(c *chain, r Rule) (float64, error) {
	switch {
	case r.Verdict == Next:
		return 0, nil
	case r.Packets == nil || r.Verdict == Unknown:
		return 0, uncounted(c, r)
	case r.Verdict == Jump:
		return w.neverReturn(c, r)
	}
	return float64(*r.Packets), nil
}

// neverReturn is how many of the packets that a rule sent to another chain found
// their verdict there.
func (w *walk) neverReturn(c *chain, r Rule) (float64, error) {
	if *r.Packets == 0 {
		return 0, nil
	}
	share, err := w.share(key{c.Table, r.To})
	return share * float64(*r.Packets), err
}

// foundVerdict is how many packets found their verdict in a chain or below it:
// they did not come back from it, nor to its end.
func (w *walk) foundVerdict(c *chain) (float64, error) {
	found := 0.0
	for _, r := range c.Rules {
		if r.Verdict == Next || r.Verdict == Return {
			continue
		}
		if r.Packets == nil || r.Verdict == Unknown {
			return 0, uncounted(c, r)
		}
		n, err := float64(*r.Packets), error(nil)
		if r.Verdict != Final {
			n, err = w.neverReturn(c, r)
		}
		if err != nil {
			return 0, err
		}
		found += n
	}
	return found, nil
}

// share is that of the packets that enter a chain and find their verdict in it or
// below.
func (w *walk) share(k key) (float64, error) {
	if share, ok := w.left[k]; ok {
		return share, nil
	}
	w.left[k] = 0 // chains cannot call themselves
	c, ok := w.of[k]
	if !ok {
		return 0, fmt.Errorf("%w: chain %s %s does not exist", ErrNotCounted, k.table, k.name)
	}
	entered, err := w.enters(c)
	if err != nil {
		return 0, err
	}
	found, err := w.foundVerdict(c)
	if err != nil {
		return 0, err
	}
	share := 0.0
	if entered > 0 {
		share = min(1, found/entered)
	}
	w.left[k] = share
	return share, nil
}

func uncounted(c *chain, r Rule) error {
	return fmt.Errorf("%w: rule %s of chain %s %s does not count what it matches", ErrNotCounted, r.ID, c.Table, c.Name)
}
