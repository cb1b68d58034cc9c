package host

import (
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// Singularity is what Singularity and Apptainer do to the network by
// default, which is nothing: programs are in a mount and a process namespace of
// their own and in their node's network.
func Singularity() network.Network {
	return network.Network{
		Kind:        result.KindModel,
		Name:        "hpc/singularity",
		Summary:     "Singularity/Apptainer: the node's own network, in a mount and a process namespace",
		Model:       "Apptainer 1.3 run --pid (namespaces by util-linux unshare)",
		LeavesOut:   "the image (root file system by overlay or squashfs), user namespaces, seccomp, cgroups",
		HostNetwork: true,
		IPv6:        true,
		Needs:       []netns.Feature{network.UnshareTool()},
		// --kill-child: nothing of it outlives unshare, which dies with this program.
		Wrap: func(network.Node) ([]string, error) {
			return []string{"unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"}, nil
		},
	}
}
