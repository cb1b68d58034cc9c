package warning

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// Doubts about what was recorded: failures, settings, MTUs, baselines.

func warnFailed(c *dataset.Dataset, a Answers) Warning {
	var f finding
	var failed, recovered int
	var reasons = map[string]int{}
	for i, s := range a.Cells {
		if s.Failed == 0 {
			continue
		}
		f.add(s.Cell, float64(s.Failed), 0)
		failed, recovered = failed+s.Failed, recovered+s.Recovered
		for r, n := range c.Cells[i].Reasons {
			reasons[r] += n
		}
	}
	if failed == 0 {
		return Warning{}
	}
	all := dataset.CellData{Reasons: reasons}
	most := all.SortedReasons()[0]
	return Warning{Code: FailedSamples, Cells: f.cells,
		Message: fmt.Sprintf("%s failed, %d replaced by a retry; the most frequent reason (%d): %s", counted(failed, "sample"), recovered, most.Count, most.Reason),
		Cure:    "read the reasons in samples.jsonl and raw/, fix them, and run the campaign again"}
}

func warnChanged(c *dataset.Dataset, a Answers) Warning {
	changed := c.Options.Environment.Changed
	if len(changed) == 0 {
		return Warning{}
	}
	return Warning{Code: SettingsChanged,
		Message: fmt.Sprintf("%s changed during the campaign: %s", counted(len(changed), "setting"), firstFew(changed)),
		Cure:    "find the program that changed them (tuned, irqbalance, an upgrade), stop it, and measure again"}
}

// warnSequence warns of networks that were not measured in the same blocks.
func warnSequence(c *dataset.Dataset, a Answers) Warning {
	order := c.Options.Environment.OneAfterAnother
	if len(order) < 2 {
		return Warning{}
	}
	return Warning{Code: OneAfterAnother,
		Message: fmt.Sprintf("networks were switched, so they were measured one after the other and not in turns (%s): differences between them include changes over time, which no interval covers", strings.Join(order, ", then ")),
		Cure:    "use the efficiencies, whose baselines were measured with each network; repeat the campaign in another order, or give each network a cluster"}
}

// warnLimits warns of pods that a cluster limits: what they measure is throttled.
func warnLimits(c *dataset.Dataset, a Answers) Warning {
	var limited []string
	for name, p := range c.Options.Environment.Places {
		if cpu := p.Limits["cpu"]; cpu != "" {
			limited = append(limited, name+": "+cpu)
		}
	}
	if len(limited) == 0 {
		return Warning{}
	}
	slices.Sort(limited)
	return Warning{Code: PodsLimited,
		Message: fmt.Sprintf("the cluster limits the CPUs of %s that requested no limit: traffic and its CPU cost are throttled (%s)", counted(len(limited), "pod"), firstFew(limited)),
		Cure:    "measure in a namespace without a LimitRange for CPUs"}
}

// forwarding is set on a node and not in a pod: that is what these are, not a
// setting that could be alike.
const forwarding = "net.ipv4.ip_forward"

// warnSettings finds settings that differ between the places of one profile: a
// network and its baseline would then differ in more than the network.
func warnSettings(c *dataset.Dataset, a Answers) Warning {
	byProfile := map[string]map[string]result.PlaceFacts{}
	for name, p := range c.Options.Environment.Places {
		if byProfile[p.Profile] == nil {
			byProfile[p.Profile] = map[string]result.PlaceFacts{}
		}
		byProfile[p.Profile][name] = p
	}
	var differ []string
	for _, profile := range slices.Sorted(maps.Keys(byProfile)) {
		for _, d := range differing(byProfile[profile]) {
			if profile != "" {
				d = "profile " + profile + ": " + d
			}
			differ = append(differ, d)
		}
	}
	if len(differ) == 0 {
		return Warning{}
	}
	return Warning{Code: SettingsDiffer,
		Message: fmt.Sprintf("%s not the same on all nodes and pods: %s", areSettings(len(differ)), firstFew(differ)),
		Cure:    "give all nodes and pods the same settings, or treat the difference as part of the network"}
}

// differing names the settings that places do not have alike, with their values.
func differing(places map[string]result.PlaceFacts) []string {
	seen := map[string]map[string]bool{} // setting to its values
	for _, p := range places {
		if p.Kernel != "" {
			note(seen, "kernel", p.Kernel)
		}
		for k, v := range p.Sysctls {
			if k != forwarding {
				note(seen, "sysctl "+k, v)
			}
		}
		for k, v := range p.Offloads {
			note(seen, "offload "+k, v)
		}
	}
	var differ []string
	for _, k := range slices.Sorted(maps.Keys(seen)) {
		if len(seen[k]) > 1 {
			differ = append(differ, k+" is "+strings.Join(slices.Sorted(maps.Keys(seen[k])), " or "))
		}
	}
	return differ
}

func areSettings(n int) string {
	if n == 1 {
		return "1 setting is"
	}
	return fmt.Sprintf("%d settings are", n)
}

func note(seen map[string]map[string]bool, key, value string) {
	if seen[key] == nil {
		seen[key] = map[string]bool{}
	}
	seen[key][value] = true
}

// firstFew joins the first three and counts the rest.
func firstFew(all []string) string {
	const few = 3
	if len(all) <= few {
		return strings.Join(all, "; ")
	}
	return strings.Join(all[:few], "; ") + fmt.Sprintf("; and %d more", len(all)-few)
}

// warnMTU finds cells whose device has another MTU than the baseline's.
func warnMTU(c *dataset.Dataset, a Answers) Warning {
	var f finding
	said := map[string]bool{}
	for _, d := range c.Cells {
		b := c.Baseline(d)
		if b == nil {
			continue
		}
		own, ok := actualMTU(d)
		base, okBase := actualMTU(b)
		if ok && okBase && own != base {
			f.add(d.Cell, math.Abs(base-own), 0)
			said[fmt.Sprintf("%s has %.0f where its baseline has %.0f", d.Cell.Network, own, base)] = true
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	return Warning{Code: MTUDiffers, Cells: f.cells,
		Message: "the MTU differs from the baseline's: " + firstFew(slices.Sorted(maps.Keys(said))),
		Cure:    "an encapsulation's smaller MTU is part of its cost; any other difference is a setting: correct the network's MTU"}
}

func actualMTU(d *dataset.CellData) (float64, bool) {
	xs := estimate.Values(d.Series("client_mtu_bytes"))
	return estimate.MedianOf(xs), len(xs) > 0
}

func warnBaseline(c *dataset.Dataset, a Answers) Warning {
	var f finding
	for _, s := range a.Cells {
		if strings.HasPrefix(s.NoEfficiency, "no baseline") {
			f.add(s.Cell, 0, 0)
		}
	}
	if len(f.cells) == 0 {
		return Warning{}
	}
	worst, _ := summary.Find(a.Cells, f.worst)
	return Warning{Code: NoBaseline, Cells: f.cells,
		Message: fmt.Sprintf("%s cannot be compared with the bare network; %s: %s", counted(len(f.cells), "cell"), named(f.worst), worst.NoEfficiency),
		Cure:    "add " + result.HostNetwork + " to the campaign's networks, and check that its samples succeed"}
}

func warnHistograms(c *dataset.Dataset, a Answers) Warning {
	var f finding
	var n int
	for i, unreadable := range a.Unreadable {
		if unreadable > 0 {
			f.add(c.Cells[i].Cell, float64(unreadable), 0)
			n += unreadable
		}
	}
	if n == 0 {
		return Warning{}
	}
	return Warning{Code: BadHistogram, Cells: f.cells,
		Message: fmt.Sprintf("%s could not be read and are not in the percentiles", counted(n, "histogram")),
		Cure:    "samples.jsonl was changed after it was written, or by another program: measure these cells again"}
}

func warnNotPositive(c *dataset.Dataset, a Answers) Warning {
	var f finding
	var n int
	for _, d := range c.Cells {
		for _, p := range d.Series(d.Primary) {
			if p.Value <= 0 {
				f.add(d.Cell, -p.Value, p.Value)
				n++
			}
		}
	}
	if n == 0 {
		return Warning{}
	}
	return Warning{Code: NotPositive, Cells: f.cells,
		Message: fmt.Sprintf("%s succeeded but transferred nothing (%s: %g); no ratio includes them", counted(n, "sample"), named(f.worst), f.value),
		Cure:    "a workload that transfers nothing should fail: read the raw output and report a bug"}
}
