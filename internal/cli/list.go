package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// listed is one row of a list.
type listed struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	// Kind is what carries a network's packets: "real", "model" or "own plugin".
	Kind string `json:"kind,omitempty"`
	// Model is what a network was modelled on; absent for real ones.
	Model string `json:"model,omitempty"`
	// Distance is how far a model is from the real network.
	Distance *result.Distance `json:"distance,omitempty"`
	// RealForm are the flags of lab up that bring up what a network is a model of.
	RealForm      string `json:"real_form,omitempty"`
	Encapsulation string `json:"encapsulation,omitempty"`
	// Datapath is what carries a network's packets on this machine, where machines differ.
	Datapath string   `json:"datapath,omitempty"`
	Needs    []string `json:"needs,omitempty"`
	// Asks is what a profile asks for, "net.ipv4.tcp_sack = 0".
	Asks []string `json:"asks,omitempty"`
	// Missing is what this machine lacks of it.
	Missing []string `json:"missing,omitempty"`
}

// listLong is the help of list.
const listLong = `list prints the names that a campaign can use, and what this machine lacks of each:

    networks         pod networks of the lab, real ones and models
    workloads        traffic: of cnibench itself, and of published tools
    links            wires between the nodes of a lab
    profiles         sets of node settings
    probes           what is measured next to the traffic
    papers           published studies, for cnibench reproduce
    service-proxies  what implements Kubernetes services on a node`

func listCommand(stdout io.Writer) *cobra.Command {
	var out outputFlags
	subjects := []string{"networks", "workloads", "links", "profiles", "probes", "papers", "service-proxies"}
	cmd := &cobra.Command{
		Use:       "list networks|workloads|links|profiles|probes|papers|service-proxies",
		Short:     "list what a campaign can name, and what this machine lacks of it",
		Long:      listLong,
		Example:   "  cnibench list networks\n  cnibench list workloads -o json",
		ValidArgs: subjects,
		Args:      usageArgs(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, _, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			var rows []listed
			switch args[0] {
			case "networks":
				rows = listNetworks(cmd.Context())
			case "workloads":
				rows = listWorkloads()
			case "links":
				for _, l := range links() {
					rows = append(rows, listed{Name: l.Name, Summary: l.Summary})
				}
			case "probes":
				rows = listProbes()
			case "service-proxies":
				rows = listServiceProxies()
			case "profiles":
				if rows, err = listProfiles(); err != nil {
					return err
				}
			case "papers":
				if rows, err = listPapers(); err != nil {
					return err
				}
			}
			write := writeRows
			if args[0] == "networks" {
				write = writeNetworks
			}
			return printValue(stdout, format, rows, func(w io.Writer) error { return write(w, rows) })
		},
	}
	out.add(cmd.Flags(), plainFormats())
	return cmd
}

// listProfiles prints what each profile asks for.
func listProfiles() ([]listed, error) {
	all, err := profile.List()
	if err != nil {
		return nil, err
	}
	rows := []listed{}
	for _, p := range all {
		row := listed{Name: p.Name, Summary: p.Summary}
		for _, s := range p.Settings() {
			row.Asks = append(row.Asks, s.Name+" = "+s.Asked)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// listProbes tries those that an end reads.
func listProbes() []listed {
	rows := []listed{}
	for _, k := range probe.Kinds() {
		row := listed{Name: k.Name, Summary: k.Summary}
		others := slices.DeleteFunc(probe.Names(), func(name string) bool { return name == k.Name })
		for _, p := range probe.List(probe.Roots{Proc: "/proc", Sys: "/sys"}, others) {
			err := p.Start()
			if held, ok := p.(io.Closer); ok {
				err = errors.Join(err, held.Close())
			}
			if err != nil {
				row.Missing = append(row.Missing, strings.Split(err.Error(), "\n")...)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func listWorkloads() []listed {
	rows := []listed{}
	for _, w := range workload.List() {
		spec := w.Spec()
		row := listed{Name: spec.Name, Summary: spec.Summary}
		for _, t := range spec.Needs {
			row.Needs = append(row.Needs, t.Name)
			if _, err := exec.LookPath(t.Name); err != nil {
				row.lacks(t)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// lacks adds a program that is not installed. Those that one build has are one line.
func (r *listed) lacks(t workload.Tool) {
	why := " not installed: " + t.Install()
	for i, m := range r.Missing {
		if names, found := strings.CutSuffix(m, why); found && t.Cure != "" {
			r.Missing[i] = strings.TrimSuffix(strings.TrimSuffix(names, " is"), " are") + ", " + t.Name + " are" + why
			return
		}
	}
	r.Missing = append(r.Missing, t.Name+" is"+why)
}

// writeNetworks shows what a network is, how its packets look on the wire and
// whether this machine has what it needs.
func writeNetworks(w io.Writer, rows []listed) error {
	var b strings.Builder
	width := 0
	for _, r := range rows {
		width = max(width, len(r.Name))
	}
	line := func(cells ...any) { fmt.Fprintf(&b, "%-*s  %-10s  %-13s  %s\n", append([]any{width}, cells...)...) }
	line("NETWORK", "KIND", "ENCAPSULATION", "AVAILABLE")
	for _, r := range rows {
		encapsulation, available := "none", "yes"
		if r.Encapsulation != "" {
			encapsulation = r.Encapsulation
		}
		if r.Datapath != "" {
			available = "yes: " + r.Datapath
		}
		if len(r.Missing) > 0 {
			available = "no: " + strings.Join(slices.Compact(r.Missing), "; ")
		}
		line(r.Name, r.Kind, encapsulation, available)
		fmt.Fprintf(&b, "    %s\n", r.Summary)
		if len(r.Needs) > 0 {
			fmt.Fprintf(&b, "    needs %s\n", strings.Join(r.Needs, ", "))
		}
		if r.Distance != nil {
			fmt.Fprintf(&b, "    %s\n", r.Distance)
		}
		if r.RealForm != "" {
			fmt.Fprintf(&b, "    real: cnibench lab up %s\n", r.RealForm)
		}
	}
	b.WriteString("\nreal: the programs that users run. model: rebuilt by cnibench from parts of the kernel. own plugin: a model whose\n" +
		"pods are attached by a CNI plugin of cnibench. docs/real.md explains them. Networks named ladder/ are only steps of\n" +
		"ladders. Each network with pods can also be named with +sockmap: TCP between pods of one node then goes from\n" +
		"socket to socket.\n")
	if all := clusterNetworks(); len(all) > 0 {
		fmt.Fprintf(&b, "\nReal networks of a lab's Kubernetes, cnibench lab up --kubernetes --cni NAME:\n%s.\n", strings.Join(all, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeRows(w io.Writer, rows []listed) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%s\n", r.Name, r.Summary)
		for _, a := range r.Asks {
			fmt.Fprintf(tw, "\t  %s\n", a)
		}
		for _, m := range slices.Compact(r.Missing) {
			fmt.Fprintf(tw, "\t  missing: %s\n", m)
		}
	}
	return tw.Flush()
}
