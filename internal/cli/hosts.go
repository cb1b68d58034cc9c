//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/testbed/baremetal"
)

func hostsCommand(stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hosts bootstrap|deploy|collect|destroy|reset",
		Short: "run the steps of a campaign on bare machines one by one",
		Long: `An Ansible inventory names the machines: one host in the group client and one in
server; one in control_plane if they are nodes of a Kubernetes; one in sink if results
should be copied there. cnibench run does all steps itself, and you can repeat each at
any time. Every host keeps its original settings, and destroy restores them; after a
kill, reset does.`,
		Example: `  cnibench run campaign.yaml --testbed hosts --inventory hosts.yml
  cnibench hosts reset --inventory hosts.yml`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	putBack := func(hosts *baremetal.Testbed, ctx context.Context) error { return destroy(ctx, hosts, stderr) }
	for _, step := range []struct {
		name, short, done string
		do                func(*baremetal.Testbed, context.Context) error
	}{
		{"bootstrap", "check that every host can be used, and restore the settings that a killed run changed", "the hosts can be used", (*baremetal.Testbed).Bootstrap},
		{"deploy", "copy this program to client and server", "cnibench is on client and server", (*baremetal.Testbed).Deploy},
		{"destroy", "remove what was copied and restore all settings", "the hosts are as they were", putBack},
		{"reset", "like destroy, after a killed run", "the hosts are as they were", putBack},
	} {
		cmd.AddCommand(hostStep(stderr, step.name, step.short, step.done, step.do))
	}
	cmd.AddCommand(hostsCollect(stderr))
	return cmd
}

func hostStep(stderr io.Writer, name, short, done string, do func(*baremetal.Testbed, context.Context) error) *cobra.Command {
	var f hostFlags
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Example: "  cnibench hosts " + name + " --inventory hosts.yml",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withHosts(cmd.Context(), f, stderr, func(hosts *baremetal.Testbed) error {
				if err := do(hosts, cmd.Context()); err != nil {
					return err
				}
				fmt.Fprintln(stderr, done)
				return nil
			})
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func hostsCollect(stderr io.Writer) *cobra.Command {
	var f hostFlags
	cmd := &cobra.Command{
		Use:     "collect DIR",
		Short:   "copy a result directory to the sink",
		Example: "  cnibench hosts collect results/matrix --inventory hosts.yml",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHosts(cmd.Context(), f, stderr, func(hosts *baremetal.Testbed) error { return collect(cmd.Context(), hosts, args[0], stderr) })
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func collect(ctx context.Context, hosts *baremetal.Testbed, dir string, stderr io.Writer) error {
	if err := hosts.Collect(ctx, dir); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%s is on the sink\n", dir)
	return nil
}

// withHosts opens the inventory's testbed for f.
func withHosts(ctx context.Context, flags hostFlags, stderr io.Writer, f func(*baremetal.Testbed) error) error {
	runner := exec.NewRunner()
	defer runner.Close()
	hosts, err := openHosts(ctx, runner, flags, stderr)
	if err != nil {
		return err
	}
	return errors.Join(f(hosts), hosts.Release())
}

func openHosts(ctx context.Context, runner *exec.Runner, f hostFlags, stderr io.Writer) (*baremetal.Testbed, error) {
	if f.inventory == "" {
		return nil, usageError{errors.New("--inventory FILE is needed: an Ansible inventory with a host in each of the groups client and server")}
	}
	if _, err := os.Stat(f.inventory); err != nil {
		return nil, usageError{fmt.Errorf("the inventory: %w", err)}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cleared, err := baremetal.ClearScratch()
	if err != nil {
		return nil, err
	}
	for _, path := range cleared {
		fmt.Fprintf(stderr, "cleared what a killed command left: %s\n", path)
	}
	return baremetal.Open(ctx, baremetal.Options{
		Runner: runner, Program: self, Inventory: f.inventory, KeepGoing: f.keepGoing,
		Say: sayOn(stderr),
	})
}

// runOnHosts is run on the machines of an inventory; what comes of it goes to
// the sink where there is one.
func runOnHosts(ctx context.Context, runner *exec.Runner, path string, c campaign.Campaign, f runFlags, stdout, stderr io.Writer) error {
	hosts, err := openHosts(ctx, runner, f.hosts, stderr)
	if err != nil {
		return err
	}
	if hosts.HasCluster() {
		if c, err = joinCluster(ctx, hosts, c, f, stderr); err != nil {
			return errors.Join(err, hosts.Release())
		}
	}
	dir, err := runOn(ctx, hosts, path, c, f, stdout, stderr)
	if dir != "" && hosts.HasSink() {
		sunk := collect(ctx, hosts, dir, stderr)
		if sunk != nil && f.hosts.keepGoing {
			fmt.Fprintf(stderr, "%s stays here alone: %v\n", dir, sunk)
			sunk = nil
		}
		err = errors.Join(err, sunk)
	}
	return errors.Join(err, hosts.Release())
}
