package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
)

// Cells is the full matrix of a campaign: every combination once, in an order
// that does not depend on the order of the file. A service is changed only on paths to one.
//
// Of a campaign on clusters it needs what was found there.
func Cells(c campaign.Campaign) []result.Cell {
	if c.Testbed == campaign.Kubernetes {
		return clusterCells(c)
	}
	var bases []result.Cell
	for _, link := range c.Links {
		for _, profile := range c.Profiles {
			for _, mtu := range c.MTU {
				for _, family := range c.Families {
					bases = append(bases, result.Cell{Link: link, Profile: profile, MTU: mtu, Family: absentIf(family, "ipv4")})
				}
			}
		}
	}
	traffics := traffics(c.Workloads)
	ways := ways(c)
	all := make([]result.Cell, 0, len(bases)*len(traffics)*len(ways))
	for _, base := range bases {
		for _, traffic := range traffics {
			for _, way := range ways {
				cell := traffic
				cell.Link, cell.Profile, cell.MTU, cell.Family = base.Link, base.Profile, base.MTU, base.Family
				cell.Network, cell.Path, cell.Placement = way.Network, way.Path, way.Placement
				cell.Services, cell.ServiceProxy, cell.Policies, cell.Encryption = way.Services, way.ServiceProxy, way.Policies, way.Encryption
				if cell.Workload != result.ServiceUpdateName || cell.ToService() { // else there is nothing to change
					all = append(all, cell)
				}
			}
		}
	}
	slices.SortFunc(all, result.Cell.Compare)
	return slices.Compact(all)
}

// clusterCells are those of each cluster with the network and MTU that it has.
// Where several have the same network the cluster is in its name, after an @:
// tables would otherwise have two rows of one name.
func clusterCells(c campaign.Campaign) []result.Cell {
	having := map[string]int{}
	for _, cluster := range c.Clusters {
		having[cluster.Found.Network]++
	}
	var all []result.Cell
	for _, cluster := range c.Clusters {
		found := cluster.Found
		if having[found.Network] > 1 {
			found.Network += "@" + cluster.Name
		}
		one := c.Named(found)
		one.Testbed, one.MTU = "", []int{found.MTU}
		for _, cell := range Cells(one) {
			cell.Cluster = cluster.Name
			if found.Pairs == nil {
				all = append(all, cell)
			}
			for _, pair := range found.Pairs {
				cell.ClientNode, cell.ServerNode = pair[0], pair[1]
				all = append(all, cell)
			}
		}
	}
	slices.SortFunc(all, result.Cell.Compare)
	return all
}

// ways are the networks with their paths, each once. On the network host a pod
// is its node, so every path there is host-to-host; that path in turn does not
// touch any other network, so it exists on host only.
func ways(c campaign.Campaign) []result.Cell {
	var out []result.Cell
	seen := make(map[result.Cell]bool)
	for _, n := range c.Networks {
		for _, p := range c.Paths {
			way := result.Cell{Network: n.Name, Path: p.String(), Placement: p.Placement}
			if n.Name == result.HostNetwork {
				way.Path = result.PathHostToHost
			} else if way.Path == result.PathHostToHost {
				continue
			}
			for _, w := range rules(c, n, way) {
				if !seen[w] {
					seen[w] = true
					out = append(out, w)
				}
			}
		}
	}
	return out
}

// rules crosses a way with what nodes are programmed with: services where it
// leads to one, policies where the network enforces them; and with what encrypts
// packets between nodes, where it leads to another node's pods.
func rules(c campaign.Campaign, n campaign.Network, way result.Cell) []result.Cell {
	ways := []result.Cell{way}
	if way.ToService() {
		ways = cross(ways, c.Services, func(w *result.Cell, v int) { w.Services = v })
		ways = cross(ways, c.ServiceProxies, func(w *result.Cell, v string) { w.ServiceProxy = v })
	}
	if n.Enforces {
		ways = cross(ways, c.Policies, func(w *result.Cell, v int) { w.Policies = v })
	}
	if way.Placement == result.InterHost && n.Name != result.HostNetwork {
		ways = cross(ways, c.Encryption, func(w *result.Cell, v string) { w.Encryption = absentIf(v, result.EncryptionNone) })
	}
	return ways
}

// traffics are the combinations of each workload's factors, each once.
func traffics(workloads []campaign.Workload) []result.Cell {
	var out []result.Cell
	seen := make(map[result.Cell]bool)
	for _, w := range workloads {
		cells := []result.Cell{{Workload: w.Name}}
		for f, values := range w.Factors {
			cells = cross(cells, values, func(c *result.Cell, v any) { f.Set(c, v) })
		}
		settle(cells)
		for _, cell := range cells {
			if !seen[cell] {
				seen[cell] = true
				out = append(out, cell)
			}
		}
	}
	return out
}

// settle leaves factors out of cells that they do not apply to.
func settle(cells []result.Cell) {
	for _, f := range result.Factors() {
		if f.Settle == nil {
			continue
		}
		for i := range cells {
			f.Settle(&cells[i])
		}
	}
}

// cross gives every cell each of the values; a factor that the workload does
// not take has none and stays absent.
func cross[V any](cells []result.Cell, values []V, set func(*result.Cell, V)) []result.Cell {
	if len(values) == 0 {
		return cells
	}
	out := make([]result.Cell, 0, len(cells)*len(values))
	for _, cell := range cells {
		for _, v := range values {
			next := cell
			set(&next, v)
			out = append(out, next)
		}
	}
	return out
}

// absentIf leaves a value out that a record takes for granted, so that the cell
// is the same whether the campaign says it or not.
func absentIf[V comparable](v, granted V) V {
	if v == granted {
		var absent V
		return absent
	}
	return v
}

// digests are the SHA-256 sums of the user's own networks' conflists.
func digests(networks []campaign.Network) map[string]string {
	var out map[string]string
	for _, n := range networks {
		if len(n.Contents) == 0 {
			continue
		}
		sum := sha256.New()
		for _, content := range n.Contents {
			fmt.Fprintf(sum, "%d\n%s", len(content), content)
		}
		if out == nil {
			out = make(map[string]string)
		}
		out[n.Name] = hex.EncodeToString(sum.Sum(nil))
	}
	return out
}
