package dataplane

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
)

// NFT is the program that nftables' rules are given to.
const NFT = "nft"

// NFTTool is the program, as a feature of the machine.
func NFTTool() netns.Feature {
	return netns.Feature{
		Name: NFT, Doc: "services by nftables", Cure: "apt-get install nftables", Probe: func() error {
			if _, err := exec.LookPath(NFT); err != nil {
				return fmt.Errorf("%s is not installed: apt-get install nftables", NFT)
			}
			return nil
		},
	}
}
