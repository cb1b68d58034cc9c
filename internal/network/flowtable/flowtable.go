// Package flowtable is nftables' flowtable on top of a routed network: packets of established
// connections bypass routing and rules on their node.
package flowtable

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// table has the flowtable and the rule that adds connections to it.
const table = "cnb-flowtable"

// On is a network whose pods of one node are behind one device, with a software flowtable
// between that device and the one on the link. The first packets of a connection take the
// network's own way.
func On(n network.Network, pods string) network.Network {
	n.Name += "+flowtable"
	n.Summary += "; packets of established connections between nodes bypass routing and rules (nftables flowtable, in software)"
	n.IPv6 = false
	n.NoEncryption = "its flowtable sends packets by the device on the link itself, which encryption replaces"
	n.Needs = append(append([]netns.Feature{}, n.Needs...), dataplane.NFTTool(), netns.NFTables(), netns.Conntrack(), netns.Flowtable())
	below := n.PodsAdded
	n.PodsAdded = func(ctx context.Context, self network.Node, nodes []network.Node, all []network.Pod) error {
		if below != nil {
			if err := below(ctx, self, nodes, all); err != nil {
				return err
			}
		}
		if !hasPods(self, all) {
			return nil // the pods' device does not exist yet
		}
		_, err := nft(ctx, self, script(self, pods), "-f", "-")
		return err
	}
	n.Bypassed = func(ctx context.Context, self network.Node) (uint64, error) {
		listing, err := nft(ctx, self, "", "list", "table", "inet", table)
		if err != nil {
			return 0, err
		}
		return parseCounter(listing)
	}
	return n
}

func hasPods(self network.Node, all []network.Pod) bool {
	for _, p := range all {
		if p.Node == self.Index {
			return true
		}
	}
	return false
}

// script is the table in the place of an earlier one. Its counter sees the packets that
// the flowtable did not take.
func script(self network.Node, pods string) string {
	return fmt.Sprintf(`add table inet %[1]s
delete table inet %[1]s
table inet %[1]s {
	flowtable fast {
		hook ingress priority filter
		devices = { %[2]s, %[3]s }
	}
	chain forward {
		type filter hook forward priority filter
		meta l4proto { tcp, udp } counter flow add @fast
	}
}
`, table, self.Device, pods)
}

func nft(ctx context.Context, self network.Node, stdin string, args ...string) (string, error) {
	r := exec.NewRunner()
	defer r.Close()
	got, err := r.Run(ctx, exec.Cmd{Argv: append([]string{dataplane.NFT}, args...), NetNS: self.NS.Path, Stdin: strings.NewReader(stdin)})
	if err != nil {
		return "", fmt.Errorf("%s: flowtable: %w", self.Name, err)
	}
	return string(got.Stdout), nil
}

// parseCounter reads how many packets the rule saw.
func parseCounter(listing string) (uint64, error) {
	found := regexp.MustCompile(`counter packets (\d+) bytes \d+ flow add @fast`).FindStringSubmatch(listing)
	if found == nil {
		return 0, fmt.Errorf("table %s has no rule that adds to the flowtable", table)
	}
	return strconv.ParseUint(found[1], 10, 64)
}
