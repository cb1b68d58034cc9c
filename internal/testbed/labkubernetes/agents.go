package labkubernetes

import (
	"path/filepath"
	"slices"

	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// Agents are the processes of the pod network's own agents on the nodes with pods, by the nodes'
// names. A pod network without agents has an entry without processes for each node. It is nil where
// this program does not know the pod network.
func Agents(k state.Kubernetes) map[string][]int {
	cni, err := FindCNI(k.CNI)
	if err != nil {
		return nil
	}
	out := map[string][]int{}
	for _, p := range k.Programs {
		switch {
		case p.Node == state.ControlPlane:
		case slices.ContainsFunc(p.Argv, func(a string) bool { return slices.Contains(cni.Programs, filepath.Base(a)) }):
			out[p.Node] = append(out[p.Node], p.PID)
		case out[p.Node] == nil:
			out[p.Node] = []int{}
		}
	}
	return out
}
