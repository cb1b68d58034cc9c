package campaign_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// Every factor with a key in the table is read from a campaign, in its own type, and
// becomes a value of a cell.
func TestKeysOfWorkloadsAreFactors(t *testing.T) {
	keys := result.FactorsBy(func(o result.Order) int { return o.Key })
	if len(keys) < 16 {
		t.Fatalf("%d factors have a key, expected 16 at least", len(keys))
	}
	all := workload.Spec{Name: "all", Protocols: []string{"tcp", "udp"}, Tests: []string{"TCP_RR", "TCP_STREAM"}}
	text := "name: c\nnetworks: [host]\nworkloads:\n"
	for _, f := range keys { // one by one: the cells of all combinations would be too many
		all.Factors = append(all.Factors, f.Name)
		text += fmt.Sprintf("- {name: all, %s: %s}\n", f.Name, f.Key().Example)
	}
	k := known()
	k.Workloads = []workload.Spec{all}
	c, err := campaign.Parse("c.yaml", []byte(text), k)
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	for i, w := range c.Workloads {
		for f, values := range w.Factors {
			if f.Name == keys[i].Name {
				given++
			}
			for _, v := range values {
				if !f.Set(&result.Cell{}, v) {
					t.Errorf("%s: a cell does not take the value %v, a %T", f.Name, v, v)
				}
			}
		}
	}
	if given != len(keys) {
		t.Errorf("%d of %d factors were read", given, len(keys))
	}
	_, err = campaign.Parse("c.yaml", []byte(strings.Replace(text, "burst:", "brust:", 1)), k)
	if err == nil || !strings.Contains(err.Error(), `did you mean "burst"?`) {
		t.Errorf("a misspelt factor: %v", err)
	}
}

// A copy of a campaign on another testbed has conditions of its own.
func TestCopiesShareNoValues(t *testing.T) {
	k := known()
	c, err := campaign.Parse("c.yaml", []byte("name: c\nnetworks: [host]\nworkloads: [{name: tcp_rr}]\n"), k)
	if err != nil {
		t.Fatal(err)
	}
	there := c.On(campaign.Hosts, k)
	if here := c.Workloads[0].Values["cpus"][0]; here != result.CPUsSame {
		t.Errorf("the campaign's own placement became %v", here)
	}
	if got := there.Workloads[0].Values["cpus"][0]; got != result.CPUsFree {
		t.Errorf("on hosts the placement is %v", got)
	}
}
