//go:build linux

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/image"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
	"github.com/cnibench/cnibench/internal/testbed/labkubernetes"
)

// kubernetesFlags are those of lab up that are about a Kubernetes.
type kubernetesFlags struct {
	wanted               bool
	name, cni, kubeProxy string
	kubeconfig, binDir   string
	ipv6, tools          bool
}

func (f *kubernetesFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.wanted, "kubernetes", false, "bring up a Kubernetes: etcd, control plane, kubelets, containerd, CNI")
	flags.StringVar(&f.cni, "cni", "bridge", "with --kubernetes: the pod network: "+strings.Join(clusterNetworks(), ", "))
	flags.StringVar(&f.kubeProxy, "kube-proxy", "iptables", "with --kubernetes: the mode of kube-proxy: iptables, nftables, none")
	flags.StringVar(&f.name, "name", "cnibench", "with --kubernetes: its name and that of the kubeconfig's context")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "with --kubernetes: the file to write, which may not exist unless lab up wrote it (default: one in the lab's folder, whose path is printed)")
	flags.StringVar(&f.binDir, "bin-dir", "", "with --kubernetes: the folder of its programs (default: where make cluster-binaries builds, then PATH)")
	flags.BoolVar(&f.ipv6, "ipv6", false, "with --kubernetes: IPv6 and IPv4 for nodes, pods and services")
	flags.BoolVar(&f.tools, "tools", false, "with --kubernetes: add the published tools that are installed on this machine to the pods' image")
}

// up brings a Kubernetes up, after what killed commands left was cleared.
func (f kubernetesFlags) up(ctx context.Context, o lab.Options, link string, mtu, nodes int) (lab.Info, error) {
	if _, err := labkubernetes.FindCNI(f.cni); err != nil {
		return lab.Info{}, usageError{err}
	}
	if err := oneOf("kube-proxy", f.kubeProxy, labkubernetes.KubeProxies()); err != nil {
		return lab.Info{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return lab.Info{}, err
	}
	var tools []image.File
	if f.tools {
		if tools, err = toolFiles(ctx); err != nil {
			return lab.Info{}, err
		}
	}
	return labkubernetes.Up(ctx, labkubernetes.Options{
		Lab: o, BinDirs: labkubernetes.BinDirs(f.binDir), Self: self, Version: version(), Kubeconfig: f.kubeconfig, Tools: tools,
	}, labkubernetes.Spec{Name: f.name, CNI: f.cni, KubeProxy: f.kubeProxy, Link: link, MTU: mtu, Nodes: nodes, IPv6: f.ipv6})
}

// describeKubernetes writes what people need of one.
func describeKubernetes(w io.Writer, k *state.Kubernetes) {
	if k == nil {
		return
	}
	frozen := ""
	if k.Frozen {
		frozen = ", frozen: cnibench lab thaw " + k.Name
	}
	fmt.Fprintf(w, "  Kubernetes %s: %s, kube-proxy %s, %d nodes%s\n", k.Name, k.CNI, k.KubeProxy, k.Nodes, frozen)
	fmt.Fprintf(w, "  kubeconfig %s\n", k.Kubeconfig)
}

func labFreeze(frozen bool, stderr io.Writer) *cobra.Command {
	verb, short := "thaw", "resume a frozen Kubernetes of a lab"
	long := "thaw resumes the processes of a Kubernetes in a lab that lab freeze has stopped."
	if frozen {
		verb, short = "freeze", "stop all processes of a Kubernetes in a lab"
		long = `freeze stops all processes of a Kubernetes in a lab, so that it takes no time from
other measurements. Its state stays; connections to it wait until lab thaw. A lab that
is frozen can be taken down like any other.`
	}
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Long: long,
		Example: "  cnibench lab " + verb + " cnibench",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			reapFirst(cmd.Context(), "lab "+verb, stderr)
			return lab.SetFrozen(cmd.Context(), lab.Options{Dir: stateDir()}, args[0], frozen)
		},
	}
}

// labHold is a node's keeper of mounts. People have no use for it.
func labHold() *cobra.Command {
	return &cobra.Command{
		Use:     "hold LAB-FOLDER NODE-FOLDER",
		Short:   "keep a node's mounts; runs until the lab goes (internal)",
		Example: "  cnibench lab hold /run/cnibench/0a1b2c /run/cnibench/0a1b2c/node1   # started by a lab",
		Hidden:  true,
		Args:    usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return labkubernetes.Hold(cmd.Context(), args[0], args[1])
		},
	}
}

// labRelay leads from this machine's loopback to an API server. People have no
// use for it.
func labRelay() *cobra.Command {
	return &cobra.Command{
		Use:     "relay ADDRESS",
		Short:   "lead connections to a lab's API server; runs until the lab goes (internal)",
		Example: "  cnibench lab relay 127.0.0.1:6443   # started by a lab",
		Hidden:  true,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return labkubernetes.Relay(cmd.Context(), args[0]) },
	}
}

// checkUp refuses flags of lab up that do not go together.
func (f kubernetesFlags) checkUp(flags *pflag.FlagSet) error {
	if err := labkubernetes.CheckKubeconfig(f.kubeconfig); err != nil {
		return usageError{err}
	}
	only := []string{"cni", "kube-proxy", "name", "kubeconfig", "bin-dir", "ipv6", "tools"}
	if f.wanted {
		only = []string{"network", "pods", "profile", "encryption"}
	}
	for _, name := range only {
		if flags.Changed(name) {
			if f.wanted {
				return usageError{fmt.Errorf("--%s is for labs without --kubernetes (see --cni)", name)}
			}
			return usageError{fmt.Errorf("--%s requires --kubernetes", name)}
		}
	}
	return nil
}
