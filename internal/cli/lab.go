//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/scratch"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/testbed/baremetal"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
	"github.com/cnibench/cnibench/internal/workload"
)

func labCommand(stdout, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab up|list|exec|freeze|thaw|down",
		Short: "build labs to look inside, and remove them",
		Long: `A lab is a set of network namespaces: a fabric with a switch, nodes, and pods
attached by real CNI ADDs. Nothing is created in the machine's own namespace.
The next command removes what a killed run left. The state of labs is in
/run/cnibench, or in the folder that CNIBENCH_STATE_DIR names.`,
		Example: `  cnibench lab up --network flannel/vxlan
  cnibench lab exec node1-pod1 -- ip address
  cnibench lab down --all`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(labUp(stdout, stderr), labList(stdout, stderr), labExec(stderr), labDown(stderr),
		labFreeze(true, stderr), labFreeze(false, stderr), labHold(), labRelay())
	return cmd
}

// labOptions are those of labs that this program makes or takes down.
func labOptions(runner *exec.Runner, cniPath []string, verb string) (lab.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return lab.Options{}, err
	}
	return lab.Options{
		Runner: runner, Agent: []string{self, "agent"},
		CNIPath: cni.SearchPath(strings.Join(cniPath, string(os.PathListSeparator))), Verb: verb, Dir: stateDir(),
		SetsAlgorithm: workload.SetsCongestionControl,
	}, nil
}

// stateDir is where labs are written down; two commands with different ones do
// not see each other's labs. "" is the usual place.
func stateDir() string { return os.Getenv("CNIBENCH_STATE_DIR") }

// machineDir is where values of this machine's settings are kept while a run
// has others: on a disk, as what tuned writes outlives a reboot.
func machineDir() string {
	return cmp.Or(stateDir(), "/var/lib/cnibench") + "-machine"
}

// reap clears what killed commands left and says so.
func reap(ctx context.Context, o lab.Options, stderr io.Writer) error {
	gone, err := lab.Reap(ctx, o)
	for _, g := range gone {
		fmt.Fprintf(stderr, "cleared what a killed command left: %s\n", g)
	}
	ofAgents, scratchErr := agent.ClearScratch()
	for _, path := range ofAgents {
		fmt.Fprintf(stderr, "cleared what a killed agent left: %s\n", path)
	}
	left, hostsErr := baremetal.ClearScratch()
	for _, path := range left {
		fmt.Fprintf(stderr, "cleared what a killed command left: %s\n", path)
	}
	papers, papersErr := scratch.Clear(paperScratch)
	for _, path := range papers {
		fmt.Fprintf(stderr, "cleared what a killed command left: %s\n", path)
	}
	return errors.Join(err, scratchErr, hostsErr, papersErr, restoreMachine(ctx, o.Runner, stderr))
}

// reapFirst is reap for commands that only look at labs: what cannot be cleared is
// a warning. Without root it does nothing.
func reapFirst(ctx context.Context, verb string, stderr io.Writer) {
	if os.Getuid() != 0 {
		return
	}
	runner := exec.NewRunner()
	defer runner.Close()
	o, err := labOptions(runner, nil, verb)
	if err == nil {
		err = reap(ctx, o, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "warning: what killed commands left is not cleared: %v\n", err)
	}
}

// restoreMachine puts back what a killed run changed of this machine.
func restoreMachine(ctx context.Context, runner *exec.Runner, stderr io.Writer) error {
	restored, err := baremetal.RestoreMachine(ctx, runner, machineDir())
	if restored {
		fmt.Fprintln(stderr, "put back the settings of this machine that a killed command had changed")
	}
	return err
}

// openLab makes the lab testbed; it builds nothing yet, but clears what killed
// runs left.
func openLab(ctx context.Context, runner *exec.Runner, c campaign.Campaign, f runFlags, stderr io.Writer) (testbed.Testbed, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("the lab creates network namespaces, which requires root: run it with sudo")
	}
	o, err := labOptions(runner, f.cniPath, "run")
	if err != nil {
		return nil, err
	}
	if err := reap(ctx, o, stderr); err != nil {
		return nil, err
	}
	if o.Networks, err = customNetworks(c); err != nil {
		return nil, usageError{err}
	}
	if f.allowTuning {
		if o.Machine, err = baremetal.TakeMachine(ctx, runner, machineDir()); err != nil {
			return nil, err
		}
	}
	return lab.New(o), nil
}

// customNetworks are the networks whose conflists the user named.
func customNetworks(c campaign.Campaign) ([]network.Network, error) {
	var own []network.Network
	for _, n := range c.Networks {
		if len(n.Contents) == 0 {
			continue
		}
		built, err := network.FromConflist(n.Name, n.Contents)
		if err != nil {
			return nil, err
		}
		own = append(own, built)
	}
	return own, nil
}

func labUp(stdout, stderr io.Writer) *cobra.Command {
	var networks, cniPath []string
	var like state.Spec // of all clusters
	var nodes, pods int
	var out outputFlags
	var kube kubernetesFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "build a lab that stays until lab down",
		Example: `  cnibench lab up --network bridge --network calico/direct --link 1-gigabit
  cnibench lab up --network flannel/vxlan --encryption wireguard-go
  cnibench lab up --kubernetes --nodes 2 --cni bridge --kube-proxy nftables --kubeconfig kubeconfig`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, _, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			if err := kube.checkUp(cmd.Flags()); err != nil {
				return err
			}
			specs, err := specsOf(networks, like, nodes, pods)
			if err != nil {
				return err
			}
			runner := exec.NewRunner()
			defer runner.Close()
			o, err := labOptions(runner, cniPath, "lab up")
			if err != nil {
				return err
			}
			if err := reap(cmd.Context(), o, stderr); err != nil {
				return err
			}
			up := func() (lab.Info, error) { return lab.Up(cmd.Context(), o, specs) }
			if kube.wanted {
				up = func() (lab.Info, error) { return kube.up(cmd.Context(), o, like.Link, like.MTU, nodes) }
			}
			info, err := up()
			if err != nil {
				return err
			}
			return writeLabs(stdout, []lab.Info{info}, format)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&networks, "network", []string{"bridge"}, "networks, each with nodes of its own")
	flags.StringVar(&like.Link, "link", "unshaped", "the wire between nodes: see cnibench list links")
	flags.StringVar(&like.Profile, "profile", lab.DefaultProfile, "the settings of nodes and pods: see cnibench list profiles")
	flags.IntVar(&nodes, "nodes", 2, "nodes of each network")
	flags.IntVar(&pods, "pods", 1, "pods on each node")
	flags.IntVar(&like.MTU, "mtu", 1500, "MTU of the link in bytes")
	flags.StringVar(&like.Encryption, "encryption", result.EncryptionNone, "what encrypts the packets between nodes: "+strings.Join(result.Encryptions(), ", "))
	flags.StringSliceVar(&cniPath, "cni-path", nil, "folders to search for CNI plugins, before the usual ones")
	out.add(flags, plainFormats())
	kube.add(flags)
	return cmd
}

// specsOf are clusters that are alike but for their networks.
func specsOf(networks []string, like state.Spec, nodes, pods int) ([]state.Spec, error) {
	if nodes < 1 {
		return nil, usageError{errors.New("--nodes: want at least 1")}
	}
	if err := oneOf("encryption", like.Encryption, result.Encryptions()); err != nil {
		return nil, err
	}
	if like.Encryption == result.EncryptionNone {
		like.Encryption = ""
	}
	var specs []state.Spec
	for _, n := range networks {
		if _, err := catalog.Find(n); err != nil {
			return nil, usageError{err}
		}
		s := like
		s.Network, s.Pods = n, make([]int, nodes)
		for i := range s.Pods {
			s.Pods[i] = pods
		}
		specs = append(specs, s)
	}
	return specs, nil
}

func labList(stdout, stderr io.Writer) *cobra.Command {
	var out outputFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "list the running labs and their namespaces",
		Example: "  cnibench lab list -o json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, _, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			reapFirst(cmd.Context(), "lab list", stderr)
			infos, err := lab.List(lab.Options{Dir: stateDir()})
			if err != nil {
				return err
			}
			return writeLabs(stdout, infos, format)
		},
	}
	out.add(cmd.Flags(), plainFormats())
	return cmd
}

func writeLabs(w io.Writer, infos []lab.Info, format string) error {
	if infos == nil {
		infos = []lab.Info{} // in JSON a list too
	}
	return printValue(w, format, infos, func(w io.Writer) error { return writeLabTable(w, infos) })
}

func writeLabTable(w io.Writer, infos []lab.Info) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range infos {
		state := "left by a killed command: the next command as root clears it"
		switch {
		case l.InUse:
			state = fmt.Sprintf("in use by process %d", l.PID)
		case l.Kept:
			state = "kept: cnibench lab down " + l.ID
		}
		fmt.Fprintf(tw, "lab %s (%s), %s\n", l.ID, l.Verb, state)
		describeKubernetes(tw, l.Kubernetes)
		for _, p := range l.Places {
			fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\t%d\t%s\n", p.Namespace, p.Kind, p.Network, p.Link, p.MTU, strings.Join(p.Addresses, " "))
		}
	}
	return tw.Flush()
}

func labExec(stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "exec PLACE -- COMMAND [ARG ...]",
		Short: "run a command in a namespace of a lab",
		Long: `exec runs a command in a namespace of a lab. PLACE is the namespace's name as
cnibench lab list shows it, or the end of the name where that is unique.`,
		Example: "  cnibench lab exec node1-pod1 -- ip route",
		Args:    usageArgs(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			reapFirst(cmd.Context(), "lab exec", stderr)
			return lab.Exec(lab.Options{Dir: stateDir()}, args[0], args[1:])
		},
	}
}

func labDown(stderr io.Writer) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "down [LAB]",
		Short:   "remove one lab, or with --all every lab that no running command uses",
		Example: "  cnibench lab down --all",
		Args:    usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return usageError{errors.New("name one lab, or use --all\nsee: cnibench lab list")}
			}
			runner := exec.NewRunner()
			defer runner.Close()
			o, err := labOptions(runner, nil, "lab down")
			if err != nil {
				return err
			}
			var gone []lab.Gone
			if all {
				gone, err = lab.DownAll(cmd.Context(), o)
			} else {
				var one lab.Gone
				if one, err = lab.Down(cmd.Context(), o, args[0]); err == nil {
					gone = []lab.Gone{one}
				}
			}
			for _, g := range gone {
				fmt.Fprintln(stderr, g)
			}
			return errors.Join(err, restoreMachine(cmd.Context(), runner, stderr))
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every lab that no running command uses")
	return cmd
}
