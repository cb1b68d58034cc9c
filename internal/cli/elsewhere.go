//go:build !linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/buildable"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/testbed"
)

// errNeedsLinux is the error of labs, hosts and agents on another system.
var errNeedsLinux = errors.New("unsupported: needs Linux\nthese work here: run --context NAME (a cluster), report, compare, recommend, explain, image")

// tuneTime is nothing: no profile of a whole machine is changed from here.
const tuneTime = 0

// asCNIPlugin does nothing: no lab can start this program as a plugin.
func asCNIPlugin(string, []string) (handled bool, status int) { return false, exitOK }

// networks are those that campaigns may name.
func networks() []buildable.Network { return buildable.Networks() }

// ladders are those of all networks that have steps.
func ladders() []buildable.Ladder { return buildable.Ladders() }

// serviceProxies are those that campaigns may name.
func serviceProxies() []buildable.ServiceProxy { return buildable.ServiceProxies() }

// links are those that campaigns may name.
func links() []buildable.Link { return buildable.Links() }

// counted is how many instructions a network takes per packet or transaction, where that
// was counted.
func counted(name, workload, placement string) (float64, bool) {
	for _, c := range buildable.Counts() {
		if c.Network == name && c.Workload == workload && c.Placement == placement {
			return c.Instructions, true
		}
	}
	return 0, false
}

// missingHere is what every network and service proxy of a lab lacks.
func missingHere() []string { return []string{"unsupported: needs Linux"} }

func listNetworks(context.Context) []listed {
	rows := []listed{}
	for _, n := range networks() {
		if !n.Variant {
			rows = append(rows, listed{Name: n.Name, Summary: n.Summary, Kind: n.Kind, Model: n.Model, Encapsulation: n.Encapsulation, Missing: missingHere()})
		}
	}
	return rows
}

// clusterNetworks is empty: no lab's Kubernetes can be brought up from here.
func clusterNetworks() []string { return nil }

func listServiceProxies() []listed {
	rows := []listed{}
	for _, p := range serviceProxies() {
		rows = append(rows, listed{Name: p.Name, Summary: p.Summary, Model: p.Model, Missing: missingHere()})
	}
	return rows
}

// untakenHere is empty: no lab can be built in which a profile would be tried.
func untakenHere(string, bool) string { return "" }

func labCompletions() map[string]cobra.CompletionFunc { return nil }

func openLab(context.Context, *exec.Runner, campaign.Campaign, runFlags, io.Writer) (testbed.Testbed, error) {
	return nil, fmt.Errorf("testbed lab: %w", errNeedsLinux)
}

func runOnHosts(context.Context, *exec.Runner, string, campaign.Campaign, runFlags, io.Writer, io.Writer) error {
	return fmt.Errorf("testbed hosts: %w", errNeedsLinux)
}

// labsUnder finds none of the clusters to be a lab of this machine.
func labsUnder(map[string]string) (resting, error) { return resting{}, nil }

// agentsUnder finds none of the clusters' agents on this machine.
func agentsUnder(resting) (func(cluster, node string) []int, error) {
	return func(string, string) []int { return nil }, nil
}

func inLabs(c campaign.Campaign) campaign.Campaign { return c }

// focus does nothing: there are no labs to freeze.
func (r resting) focus(context.Context, string) error { return nil }

func labCommand(io.Writer, io.Writer) *cobra.Command {
	return needsLinux("lab", "build labs to look inside, and remove them", false)
}

func hostsCommand(io.Writer) *cobra.Command {
	return needsLinux("hosts", "run the steps of a campaign on bare machines one by one", false)
}

func doctorCommand(io.Writer) *cobra.Command {
	return needsLinux("doctor", "show what this machine can measure", false)
}

func agentCommand(io.Writer) *cobra.Command {
	return needsLinux("agent", "run one end of samples", true)
}

func tunnelCommand() *cobra.Command {
	return needsLinux("tunnel", "forward a lab node's packets in UDP", true)
}

// needsLinux is a command that this system does not have; it takes any arguments, so that
// its error is the reason and not their number.
func needsLinux(name, short string, hidden bool) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short + " (needs Linux)", Example: "  cnibench " + name, Hidden: hidden, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if a == "-h" || a == "--help" {
					return cmd.Help()
				}
			}
			return errNeedsLinux
		},
	}
}
