package ovn

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/network"
)

// ovnArguments bounds what one ovn-nbctl gets to do, in bytes: the kernel refuses a program
// with more than 2 MiB of arguments and environment (execve(2), with a stack of 8 MiB).
const ovnArguments = 256 << 10

// ovnSyncBalancers makes the services those of a node. The node with the databases of its zone
// makes the load balancers of the whole zone; each node makes those of its own NodePorts. Both
// end when the switches of all nodes of the zone have the flows.
func ovnSyncBalancers(ctx context.Context, self network.Node, services []network.Service) error {
	v := nodeOVN(self)
	out, err := v.nbctl(ctx, "--bare", "--", "--columns=name", "list", "Load_Balancer", "--", "--columns=name", "list", "Load_Balancer_Group",
		"--", "--columns=name", "list", "Logical_Switch")
	if err != nil {
		return err
	}
	has := strings.Fields(out)
	cluster := ovnBalancers(services, ovnForCluster, ovnClusterVIP)
	var commands [][]string
	switch own, err := v.hasDatabases(); {
	case err != nil:
		return err
	case own:
		if !slices.Contains(has, ovnBalancerGroup) {
			commands = append(commands, ovnGroup(has))
		}
		commands = append(commands, ovnBalance(cluster, has, ovnForCluster, "Load_Balancer_Group", ovnBalancerGroup)...)
	case len(cluster) > 0: // the node with the databases makes the last one last
		commands = append(commands, []string{"--", "wait-until", "Load_Balancer", cluster[len(cluster)-1].name})
	}
	commands = append(commands, ovnBalance(ovnBalancers(services, ovnForNode(self), ovnNodeVIP(self)), has, ovnForNode(self), "Logical_Switch", self.Name)...)
	for _, args := range ovnChunks(commands, ovnArguments) {
		if _, err := v.nbctl(ctx, args...); err != nil {
			return err
		}
	}
	if _, err := v.nbctl(ctx, "--wait=hv", "sync"); err != nil {
		return v.explain("ovn-northd", err)
	}
	return nil
}

// ovnGroup is the command for the group of load balancers that all switches have.
func ovnGroup(switches []string) []string {
	args := []string{"--", "--id=@group", "create", "Load_Balancer_Group", "name=" + ovnBalancerGroup}
	for _, s := range switches {
		if !strings.HasPrefix(s, "Service_") {
			args = append(args, "--", "add", "Logical_Switch", s, "load_balancer_group", "@group")
		}
	}
	return args
}

// ovnBalance is the commands that make load balancers those of a row of a table, in the place
// of those that has names, whose names end alike.
func ovnBalance(want []ovnBalancer, has []string, where, table, row string) [][]string {
	gone := map[string]bool{}
	for _, name := range has {
		if strings.HasPrefix(name, "Service_") && strings.HasSuffix(name, "_"+where) {
			gone[name] = true
		}
	}
	var all [][]string
	for i, b := range want {
		vips := "vips={" + strings.Join(b.vips, ",") + "}"
		if gone[b.name] {
			delete(gone, b.name)
			all = append(all, []string{"--", "set", "Load_Balancer", b.name, vips})
			continue
		}
		id := fmt.Sprintf("@%s%d", strings.ToLower(table), i)
		all = append(all, []string{
			"--", "--id=" + id, "create", "Load_Balancer", "name=" + b.name, "protocol=" + b.protocol, vips,
			"options:event=false", fmt.Sprintf("options:hairpin_snat_ip=%q", ovnHairpin+" "+ovnHairpin6), "options:neighbor_responder=none", "options:reject=true", "options:skip_snat=false",
			"external_ids:k8s.ovn.org/kind=Service", fmt.Sprintf("external_ids:k8s.ovn.org/owner=%q", b.owner),
			"--", "add", table, row, "load_balancer", id,
		})
	}
	for _, name := range has {
		if gone[name] {
			all = append(all, []string{"--", "destroy", "Load_Balancer", name})
		}
	}
	return all
}

// ovnChunks puts commands together, as many as have no more bytes than that.
func ovnChunks(commands [][]string, most int) [][]string {
	var all [][]string
	room := 0
	for _, command := range commands {
		size := 0
		for _, arg := range command {
			size += len(arg) + 1 + 8 // its end, and its place in argv
		}
		if size > room {
			all, room = append(all, nil), most
		}
		room -= size
		last := len(all) - 1
		all[last] = append(all[last], command...)
	}
	return all
}
