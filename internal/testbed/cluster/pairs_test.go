package cluster

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/kubeclient/kubetest"
	"github.com/cnibench/cnibench/internal/result"
)

// Pairs of nodes have one pod of each network on each node, and each pair has its
// own ends.
func TestEveryPairHasItsEnds(t *testing.T) {
	c := kubetest.New("a", "b", "c", "d")
	b, heard := open(t, c)
	b.clusters[0].options.Pairs = campaign.AllPairs
	if _, err := c.API.CoreV1().Nodes().Update(t.Context(), cordoned("d"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods, hosts := cell(result.PathPodToPod, result.InterHost), cell(result.PathHostToHost, result.InterHost)
	found, err := b.Prepare(t.Context(), []result.Cell{pods, hosts})
	if err != nil {
		t.Fatal(err)
	}
	if want := campaign.EveryPair([]string{"a", "b", "c"}); fmt.Sprint(found[0].Pairs) != fmt.Sprint(want) {
		t.Errorf("pairs %v, want %v", found[0].Pairs, want)
	}
	if list, err := c.API.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 6 {
		t.Errorf("%d pods, %v: want one of each network on each node", len(list.Items), err)
	}
	if !heard.has("not among the pairs") {
		t.Errorf("no message names the node that takes no pods: %q", heard.lines)
	}
	for _, pair := range found[0].Pairs {
		for kind, cell := range map[string]result.Cell{"pod": pods, "host": hosts} {
			cell.ClientNode, cell.ServerNode = pair[0], pair[1]
			ends, err := b.Ends(t.Context(), cell)
			if err != nil {
				t.Fatal(err)
			}
			if ends.Client.Node != pair[0] || ends.Server.Node != pair[1] || !strings.HasPrefix(ends.Server.Name, kind+"-both-") {
				t.Errorf("%v: %s and %s", pair, ends.Client.Name, ends.Server.Name)
			}
		}
	}
	pods.ClientNode, pods.ServerNode = "a", "d"
	if unsupported, err := b.Build(t.Context(), []result.Cell{pods}); err != nil || !strings.Contains(unsupported[pods], "d is cordoned") {
		t.Errorf("%v, %v", unsupported, err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if names := left(t, c); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

func cordoned(name string) *corev1.Node {
	n := kubetest.Node(name)
	n.Spec.Unschedulable = true
	return n
}

func TestNoPairs(t *testing.T) {
	for pairs, want := range map[string]string{campaign.AllPairs: "pairs of nodes need two", campaign.PairsAcrossZones: "different zones"} {
		nodes := []string{"a", "b"}
		if pairs == campaign.AllPairs {
			nodes = nodes[:1]
		}
		c := kubetest.New(nodes...)
		b, _ := open(t, c)
		b.clusters[0].options.Pairs = pairs
		if _, err := b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.InterHost)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", pairs, err)
		}
		if names := left(t, c); len(names) > 0 {
			t.Errorf("left: %v", names)
		}
	}
}
