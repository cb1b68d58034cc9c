package explain

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// other is a network that differs from one in a single choice.
type other struct{ network, what string }

// otherChoices are the networks that differ from one in a single choice, and the
// choice in words.
func otherChoices(network string) []other {
	const (
		native   = "native routing instead of the tunnel"
		noPolicy = "no network policy"
		policy   = "-policy"
	)
	var out []other
	switch base, hadPolicy := strings.CutSuffix(network, policy); base {
	case "flannel/vxlan", "flannel/ipip", "flannel/wireguard", "flannel/udp":
		out = append(out, other{"flannel/host-gw", native})
	case "calico/vxlan", "calico/ipip":
		end := ""
		if hadPolicy {
			end = policy
		}
		out = append(out, other{"calico/direct" + end, native})
	case "cilium/vxlan", "cilium/geneve":
		out = append(out, other{"cilium/native", native})
	case "flannel/vxlan-no-offload":
		out = append(out, other{"flannel/vxlan", "checksum offload on the tunnel's device"})
	}
	if base, ok := strings.CutSuffix(network, policy); ok {
		out = append(out, other{base, noPolicy})
	}
	switch network {
	case "kube-router/policy":
		out = append(out, other{"kube-router", noPolicy})
	case "canal":
		out = append(out, other{"flannel/vxlan", noPolicy})
	case "flannel/udp":
		out = append(out, other{"flannel/vxlan", "the tunnel in the kernel instead of a program"})
	case "docker/bridge":
		out = append(out, other{"macvlan", "a device of its own for each pod instead of the bridge"})
	}
	return append(out, other{network + "+sockmap", "passing data from socket to socket (sockmap)"},
		other{network + "+bigtcp", "TCP segments of up to 192 KiB (BIG TCP)"},
		other{network + "+netkit", "a netkit in place of each pod's veth"})
}

// changes are the other choices that the campaign measured in the same situation, or
// on a larger MTU.
func changes(d *report.Document, e Explanation) []Change {
	var out []Change
	for _, x := range e.Traffics {
		for _, o := range otherChoices(e.Network) {
			c := x.cell
			c.Network = o.network
			out = change(d, out, x, c, o.what)
		}
		for _, s := range d.Analysis.Cells {
			c := x.cell
			if s.Cell.MTU > c.MTU {
				c.MTU = s.Cell.MTU
				if s.Cell == c {
					out = change(d, out, x, c, fmt.Sprintf("an MTU of %d", c.MTU))
				}
			}
		}
		if !x.cell.UDPGSO {
			c := x.cell
			c.UDPGSO = true
			out = change(d, out, x, c, "UDP segmentation offload")
		}
	}
	return out
}

// change compares a traffic with the same one at another cell.
func change(d *report.Document, all []Change, x ExplainedTraffic, cell result.Cell, what string) []Change {
	s, ok := d.Analysis.Cell(cell)
	if !ok || s.OK == 0 {
		return all
	}
	var then estimate.Estimate
	if x.Cost == costByStacks {
		if s.Attribution == nil || s.Attribution.Work != x.Attribution.Work {
			return all
		}
		then = s.Attribution.Total
	} else if then, ok = report.AbsoluteOf(s, x.Cost); !ok {
		return all
	}
	c := Change{What: what, Network: cell.Network, MTU: cell.MTU, Traffic: x.Traffic, Now: x.Now, Then: then, Significant: !overlap(x.Now, then)}
	measured := cell.Network
	if cell.Network == x.cell.Network {
		measured = "the same network with it"
	}
	values := fmt.Sprintf("%s instead of %s of %s", x.say(then), x.say(x.Now), x.label)
	switch {
	case !c.Significant:
		c.Words = fmt.Sprintf("%s: for %s, %s took %s: no difference beyond the noise.", what, x.Traffic, measured, values)
	default:
		c.Words = fmt.Sprintf("%s: for %s, %s took %s, %s.", what, x.Traffic, measured, values, percentMore(then.Value-x.Now.Value, x.Now.Value))
	}
	return append(all, c)
}
