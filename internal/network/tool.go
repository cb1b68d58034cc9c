package network

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
)

// UnshareTool is the program unshare, as a feature of the machine.
func UnshareTool() netns.Feature {
	return netns.Feature{
		Name: "unshare", Doc: "the network hpc/singularity", Cure: "apt-get install util-linux", Probe: func() error {
			if _, err := exec.LookPath("unshare"); err != nil {
				return fmt.Errorf("unshare is not installed: apt-get install util-linux")
			}
			return nil
		},
	}
}
