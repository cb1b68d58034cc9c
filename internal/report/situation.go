package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// Situation is what the cells of a group have in common: all factors but the network and
// the workload's.
type Situation struct {
	Path, placement, link, profile string
	mtu                            int
	Rules                          rules
}

// rules is what nodes are programmed with in addition to what the network needs.
type rules struct {
	services     int
	serviceProxy string
	Policies     int
	encryption   string
}

// SituationOf is the situation that a cell was measured in.
func SituationOf(c result.Cell) Situation {
	return Situation{c.Path, c.Placement, c.Link, c.Profile, c.MTU, rules{c.Services, c.ServiceProxy, c.Policies, c.Encryption}}
}

// TrafficOf is a cell with nothing but the workload's factors.
func TrafficOf(c result.Cell) result.Cell {
	c.Network, c.Cluster, c.Path, c.Placement, c.Link, c.Profile, c.MTU = "", "", "", "", "", "", 0
	c.Services, c.ServiceProxy, c.Policies, c.Encryption = 0, "", 0, ""
	return c
}

// String is the situation in words.
func (p Situation) String() string {
	var parts []string
	if s := strings.TrimSpace(p.Path + " " + p.placement); s != "" {
		parts = append(parts, s)
	}
	if s := p.Rules.String(); s != "" {
		parts = append(parts, s)
	}
	if p.link != "" {
		parts = append(parts, "link "+p.link)
	}
	if p.profile != "" {
		parts = append(parts, "profile "+p.profile)
	}
	if p.mtu > 0 {
		parts = append(parts, fmt.Sprintf("MTU %d", p.mtu))
	}
	return strings.Join(parts, ", ")
}

// String says the rules in the words of a cell.
func (r rules) String() string {
	return result.Cell{Services: r.services, ServiceProxy: r.serviceProxy, Policies: r.Policies, Encryption: r.encryption}.Rules()
}

// Short names what differs between a situation and the others of the report. A
// baseline's own path is not a difference.
func (d *Document) Short(p Situation) string {
	var own Situation
	for _, g := range d.Groups {
		if g.Situation.Path != p.Path && p.Path != result.PathHostToHost {
			own.Path = p.Path
		}
		if g.Situation.placement != p.placement {
			own.placement = p.placement
		}
		if g.Situation.link != p.link {
			own.link = p.link
		}
		if g.Situation.profile != p.profile {
			own.profile = p.profile
		}
		if g.Situation.mtu != p.mtu {
			own.mtu = p.mtu
		}
		if g.Situation.Rules != p.Rules {
			own.Rules = p.Rules
		}
	}
	return own.String()
}

// mostWhere is how many parts of where something is are named.
const mostWhere = 4

// Where names the cells that something is about, network by network; after the
// first few only their number.
func (d *Document) Where(cells []result.Cell) string {
	type key struct {
		network, pair string
		situation     Situation
	}
	traffics, order := map[key][]string{}, []key{}
	for _, c := range cells {
		k := key{c.Network, c.Pair(), SituationOf(c)}
		if len(traffics[k]) == 0 {
			order = append(order, k)
		}
		traffics[k] = append(traffics[k], c.Traffic())
	}
	var parts []string
	named := 0
	for i, k := range order {
		if i == mostWhere {
			parts = append(parts, fmt.Sprintf("and %s more", Count(len(cells)-named, "cell", "cells")))
			break
		}
		named += len(traffics[k])
		s := d.Name(k.network) + " " + strings.TrimPrefix(k.pair+" ", " ") + strings.Join(traffics[k], ", ")
		if k.pair == "" && len(traffics[k]) > 1 && len(traffics[k]) == d.Planned(k.network, k.situation) {
			s = d.Name(k.network) + " (all traffic)"
		}
		if where := d.Short(k.situation); where != "" {
			s += " (" + where + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// CellName says a cell in words, with what differs between situations.
func (d *Document) CellName(c result.Cell) string {
	s := d.Name(c.Network) + " " + c.Traffic()
	if where := d.Short(SituationOf(c)); where != "" {
		s += " (" + where + ")"
	}
	return s
}

// Planned is the number of cells that a network has in some situations, in any
// where none is named.
func (d *Document) Planned(network string, in ...Situation) int {
	n := 0
	add := func(c result.Cell) {
		if c.Network == network && (len(in) == 0 || slices.Contains(in, SituationOf(c))) {
			n++
		}
	}
	for _, s := range d.Analysis.Cells {
		add(s.Cell)
	}
	for _, c := range d.Unmeasured {
		add(c)
	}
	return n
}
