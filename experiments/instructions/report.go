package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/aclements/go-moremath/stats"

	"github.com/cnibench/cnibench/internal/result"
)

//go:embed preamble.md
var preamble string

// report writes docs/instructions.md. here are the samples of the known change
// on this machine's own kernel.
func report(w io.Writer, got, here counted, p plan) {
	fmt.Fprint(w, preamble)
	per := got.perTurn()
	fmt.Fprintf(w, "Kernel %s; %d samples of %d packets or transactions each; intervals are of %.0f %%. ", got.kernel, p.Samples, p.Packets, 100*confidence)
	fmt.Fprintf(w, "The clock, compared with a loop of %d instructions a turn: %.4f ± %.4f ns a turn.\n", instructionsPerTurn, per.mean, per.half)
	networks(w, got, p)
	fmt.Fprint(w, "\n## Orders\n\nWhat theory requires and what Qi et al. (2020) report about cycles, compared with the counts.\n\n")
	orderTable(w, got, orders())
	sweeps(w, got)
	change(w, got, here)
}

// columns are what is counted of each network.
func columns() []traffic {
	var all []traffic
	for _, workload := range []string{"udp_stream", "tcp_rr"} {
		for _, placement := range []string{result.InterHost, result.IntraHost} {
			all = append(all, traffic{Workload: workload, Placement: placement})
		}
	}
	return all
}

func networks(w io.Writer, got counted, p plan) {
	fmt.Fprint(w, "\n## Networks\n\nInstructions per datagram and per transaction, with the coefficient of variation.\n\n| network |")
	for _, t := range columns() {
		fmt.Fprintf(w, " %s %s |", t.Workload, t.Placement)
	}
	fmt.Fprint(w, "\n|---|"+strings.Repeat("---:|", len(columns()))+"\n")
	largest := 0.0
	var not []string
	for _, s := range p.Settings {
		if s.Rules.Kind != "" || len(s.Traffic) != len(columns()) {
			continue
		}
		line := "| " + s.Network + " |"
		for _, t := range columns() {
			xs, err := got.find(subject{Network: s.Network}, t.Workload, t.Placement, 0)
			if err != nil {
				line = ""
				not = append(not, fmt.Sprintf("- %s", err))
				break
			}
			largest = max(largest, variation(xs))
			line += fmt.Sprintf(" %.0f (%.2f %%) |", stats.Mean(xs), 100*variation(xs))
		}
		if line != "" {
			fmt.Fprintln(w, line)
		}
	}
	fmt.Fprintf(w, "\nThe largest coefficient of variation is %.2f %%.\n", 100*largest)
	if len(not) > 0 {
		fmt.Fprintf(w, "\nNot counted:\n\n%s\n", strings.Join(not, "\n"))
	}
}

func orderTable(w io.Writer, got counted, orders []order) {
	fmt.Fprint(w, "| order | by | traffic | less | more | difference | holds |\n|---|---|---|---|---|---:|---|\n")
	var because []string
	for _, o := range orders {
		less, more, diff, err := got.check(o)
		holds := "yes"
		switch {
		case err != nil:
			holds = "not counted: " + err.Error()
		case !diff.positive():
			holds = "no"
			because = append(because, fmt.Sprintf("- **%s** (%s, %s): %s", o.Claim, o.Less, o.More, o.Because))
		}
		difference := ""
		if err == nil {
			difference = fmt.Sprintf("%s (%+.1f %%)", diff, 100*diff.mean/less.mean)
		}
		fmt.Fprintf(w, "| %s | %s | %s %s | %s: %.0f | %s: %.0f | %s | %s |\n",
			o.Claim, o.Source, o.Workload, o.Placement, o.Less, less.mean, o.More, more.mean, difference, holds)
	}
	if len(because) > 0 {
		fmt.Fprintf(w, "\nOrders that do not hold:\n\n%s\n", strings.Join(because, "\n"))
	}
}

func sweeps(w io.Writer, got counted) {
	fmt.Fprintf(w, "\n## Cost of a rule\n\nRules that no packet matches, in the forwarding path of the client's node of %s, udp_stream inter-host.\n\n| kind |", sweepNetwork)
	for _, n := range sweepCounts() {
		fmt.Fprintf(w, " %d rules |", n)
	}
	fmt.Fprint(w, " instructions per rule |\n|---|"+strings.Repeat("---:|", len(sweepCounts())+1)+"\n")
	for _, kind := range sweepKinds() {
		r := row{head: kind}
		for _, n := range sweepCounts() {
			s := subject{Network: sweepNetwork}
			if n > 0 {
				s.Rules = rules{Kind: kind, Count: n}
			}
			counts, err := got.find(s, "udp_stream", result.InterHost, 0)
			r.add(n, counts, err)
		}
		fmt.Fprintln(w, r)
	}
}

// row is what a count of rules or services takes, one cell for each, and at its
// end what each of them takes.
type row struct {
	head   string
	cells  []string
	xs, ys []float64
}

// add takes the counts of n rules or services, or why there are none.
func (r *row) add(n int, counts []float64, err error) {
	if err != nil {
		r.cells = append(r.cells, err.Error())
		return
	}
	for _, y := range counts {
		r.xs, r.ys = append(r.xs, float64(n)), append(r.ys, y)
	}
	r.cells = append(r.cells, fmt.Sprintf("%.0f", stats.Mean(counts)))
}

func (r row) String() string {
	cells := append([]string{r.head}, r.cells...)
	if len(r.xs) > 2 {
		b := slope(r.xs, r.ys)
		cells = append(cells, fmt.Sprintf("%.2f ± %.2f", b.mean, b.half))
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// changeFound is how much more one takes than the other, in percent.
func (c counted) changeFound() (value, error) {
	known := subject{Network: knownChange().Network}
	plain, err := c.find(known, "udp_stream", result.InterHost, 0)
	if err != nil {
		return value{}, err
	}
	costly, err := c.find(known, "udp_stream", result.InterHost, knownTwicePercent)
	if err != nil {
		return value{}, err
	}
	return difference(plain, costly).times(100 / stats.Mean(plain)), nil
}

func change(w io.Writer, got, here counted) {
	fmt.Fprintf(w, "\n## A known change of %d %%\n\nThe same network (%s), and with %d of a hundred packets sent twice, in turns:\n\n", knownTwicePercent, sweepNetwork, knownTwicePercent)
	for _, one := range []struct {
		what string
		got  counted
	}{
		{"instructions per packet, in the virtual machine", got},
		{"time per packet, on the machine that wrote this, by its own kernel", here},
	} {
		v, err := one.got.changeFound()
		if err != nil {
			fmt.Fprintf(w, "- %s: %v\n", one.what, err)
			continue
		}
		found := "found"
		if !v.positive() {
			found = "not found"
		}
		fmt.Fprintf(w, "- %s: %+.2f ± %.2f %%, %s\n", one.what, v.mean, v.half, found)
	}
}
