package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/kubeclient/kubetest"
	"github.com/cnibench/cnibench/internal/result"
)

// One cluster with three networks in turn: the first cannot be switched to, the
// second is what was said, the third turns out to be another.
func TestSwitch(t *testing.T) {
	c := kubetest.New("a", "b")
	probe, _ := open(t, c)
	is, err := probe.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.InterHost), cell(result.PathHostToHost, result.InterHost)})
	if err == nil {
		err = probe.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	var ran []string
	heard := &said{}
	b, err := Open(Options{Image: "image", Say: heard.say, Connect: func(string, string) (*kubeclient.Client, error) { return c.Client(), nil },
		Clusters: []campaign.Cluster{
			{Name: "one", Network: "one", Switch: [][]string{{"false"}}},
			{Name: "two", Network: is[0].Network, Switch: [][]string{{"helm", "two"}, {"kubectl", "wait"}}},
			{Name: "three", Network: "cilium/native", Switch: [][]string{{"helm", "three"}}},
		},
		Run: func(_ context.Context, _ campaign.Cluster, argv []string) (string, string, error) {
			if names := left(t, c); len(names) > 0 {
				t.Errorf("%v while the network is switched", names)
			}
			ran = append(ran, strings.Join(argv, " "))
			if argv[0] == "false" {
				return "", "no", errors.New("status 1: no")
			}
			return "done", "", nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	var cells []result.Cell
	for _, name := range []string{"one", "two", "three"} {
		pods, hosts := cell(result.PathPodToPod, result.InterHost), cell(result.PathHostToHost, result.InterHost)
		pods.Cluster, hosts.Cluster = name, name
		cells = append(cells, pods, hosts)
	}
	found, err := b.Prepare(t.Context(), cells)
	if err != nil || found[0].Network != "one" || found[1].MTU != is[0].MTU || found[2].MTU != is[0].MTU {
		t.Fatalf("%+v, %v", found, err)
	}
	if n, of := b.Groups(); n != 3 || of(cells[3]) != 1 {
		t.Errorf("%d groups", n)
	}
	if _, err := b.Switch(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "cluster one: its network was not switched: status 1: no") {
		t.Errorf("one: %v", err)
	}
	printed, err := b.Switch(t.Context(), 1)
	if err != nil || len(printed) != 2 || printed[1].Name != "switch-two-2" || printed[1].Stdout != "done" {
		t.Errorf("two: %+v, %v", printed, err)
	}
	if _, err := b.Ends(t.Context(), cells[2]); err != nil {
		t.Error(err)
	}
	if _, err := b.Switch(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "has the network "+is[0].Network+", and the campaign says cilium/native") {
		t.Errorf("three: %v", err)
	}
	if _, err := b.Ends(t.Context(), cells[4]); err == nil {
		t.Error("three has ends")
	}
	env, err := b.Environment(t.Context())
	if err != nil || strings.Join(env.OneAfterAnother, " ") != "one two three" || len(env.Places) == 0 {
		t.Errorf("%+v, %v", env, err)
	}
	if got := strings.Join(ran, ", "); got != "false, helm two, kubectl wait, helm three" {
		t.Errorf("ran %s", got)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if names := left(t, c); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}
