package campaign

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// fillRanks gives a workload with many ends what the file leaves open.
func fillRanks(w *Workload, spec workload.Spec) {
	if !w.has("ranks") {
		w.set("ranks", cmp.Or(spec.Ranks(w.firstTest()), workload.DefaultRanks))
	}
	if !w.has("ranks_per_node") {
		w.set("ranks_per_node", 1)
	}
	if !w.has("matrix_size") && takes(spec, "matrix_size") {
		w.set("matrix_size", workload.DefaultMatrixSize)
	}
	if !w.has("block_size") && takes(spec, "block_size") {
		w.set("block_size", workload.DefaultBlockSize)
	}
	if !w.has("algorithm") && len(spec.Algorithms) > 0 {
		w.set("algorithm", spec.Algorithms[0])
	}
}

// checkRanks refuses workloads with many ends that cannot be run: a choice of ranks,
// algorithm and message size, or a path that has no place for ranks.
func (d *decoder) checkRanks(c *Campaign) {
	for i, w := range c.Workloads {
		where := keyPath{"workloads", i}
		spec, ok := d.known.workload(w.Name)
		if !ok || !spec.ManyEnds || !d.good(where) {
			continue
		}
		if d.checkChoices(where, w, spec) && d.good(keyPath{"paths"}) {
			d.checkRankPaths(c, where, w)
		}
	}
}

// checkChoices reports the first choice of a workload that cannot be run.
func (d *decoder) checkChoices(where keyPath, w Workload, spec workload.Spec) bool {
	hint := ""
	sizes, algorithms, tests := w.numbers("message_bytes"), w.texts("algorithm"), w.texts("test")
	if len(sizes) > 1 || len(w.numbers("ranks")) > 1 || len(algorithms) > 1 || len(tests) > 1 {
		hint = "list the workload a second time for other choices"
	}
	for k, size := range orOne(sizes) {
		for n, ranks := range w.numbers("ranks") {
			for a, algorithm := range orOne(algorithms) {
				for _, test := range orOne(tests) {
					err := spec.CheckRanks(test, algorithm, ranks, size)
					if err == nil {
						continue
					}
					at := where.with("ranks").with(n)
					switch {
					case spec.CheckRanks(test, algorithm, ranks, spec.DefaultMessageBytes) == nil:
						at = where.with("message_bytes").with(k)
					case len(spec.Algorithms) > 0 && spec.CheckRanks(test, spec.Algorithms[0], ranks, size) == nil:
						at = where.with("algorithm").with(a)
					}
					d.fail(at, hint, "%s", err)
					return false
				}
			}
		}
	}
	return true
}

// orOne are the values of a factor, or its zero value where the workload has none.
func orOne[V any](values []V) []V {
	if len(values) == 0 {
		return make([]V, 1)
	}
	return values
}

// checkRankPaths refuses paths whose two ends are not alike, and numbers of ranks per
// node that contradict a path's placement.
func (d *decoder) checkRankPaths(c *Campaign, where keyPath, w Workload) {
	perNode, ranks := slices.Max(w.numbers("ranks_per_node")), slices.Min(w.numbers("ranks"))
	for i, p := range c.Paths {
		switch {
		case p.From != p.To:
			d.fail(keyPath{"paths", i}, "write {from: pod, to: pod}, or make the workload a campaign of its own", "%s has ranks that are all pods or all nodes: there is no path from %s to %s between them", w.Name, p.From, p.To)
			return
		case p.Placement == result.IntraHost && perNode > 1:
			d.fail(where.with("ranks_per_node"), "leave it out: all ranks are on one node then", "a path with placement %s has all ranks of %s on one node", p.Placement, w.Name)
			return
		case p.Placement == result.InterHost && perNode >= ranks:
			d.fail(where.with("ranks_per_node"), "write placement: intra-host for a job inside one node", "%d ranks per node put all %d ranks of %s on one node, and the path's placement is %s",
				perNode, ranks, w.Name, p.Placement)
			return
		}
	}
}
