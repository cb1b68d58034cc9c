package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/cnibench/cnibench/internal/campaign"
)

// loadCampaign reads the campaign in a file, or in text where that is given.
func loadCampaign(path string, text []byte, testbed string, stderr io.Writer) (campaign.Campaign, error) {
	var c campaign.Campaign
	var err error
	if text == nil {
		c, err = campaign.Load(path, known())
	} else {
		c, err = campaign.Parse(path, text, known())
	}
	if err != nil {
		return c, usageError{err}
	}
	if testbed != "" {
		if err := oneOf("testbed", testbed, known().Testbeds); err != nil {
			return c, err
		}
		if testbed == campaign.Kubernetes {
			var notes []string
			c, notes = c.OnClusters()
			for _, note := range notes {
				fmt.Fprintln(stderr, "note: "+note)
			}
		} else if c.Testbed == campaign.Kubernetes || testbed == "lab" && slices.ContainsFunc(c.Networks, func(n campaign.Network) bool { return n.Name == campaign.Detected }) {
			return c, usageError{fmt.Errorf("%s requires testbed kubernetes, because it measures the network that a cluster has; for --testbed %s name networks of the lab", path, testbed)}
		}
		c = c.On(testbed, known())
	}
	return c, nil
}
