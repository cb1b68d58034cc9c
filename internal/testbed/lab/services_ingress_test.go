package lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
)

// ingressCells are the cells of a network that an ingress can have.
func ingressCells(name string) []result.Cell {
	var all []result.Cell
	for _, c := range serviceCells(name, "ingress", 1) {
		if c.Workload = "http"; c.Path == result.PathPodToNodePort {
			all = append(all, c)
		}
	}
	return all
}

// web serves HTTP at a pod until the test ends: who asked, and for whom.
func web(t *testing.T, ns netns.NS, at netip.AddrPort) {
	t.Helper()
	var l net.Listener
	err := netns.Do(ns, func() (err error) {
		l, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintf(w, "%s for %s", from, r.Header.Get("X-Forwarded-For"))
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
}

// get asks an address by HTTP from a pod.
func get(t *testing.T, ns netns.NS, at netip.AddrPort) string {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (conn net.Conn, err error) {
			err = netns.Do(ns, func() error {
				conn, err = net.DialTCP("tcp4", nil, net.TCPAddrFromAddrPort(at))
				return err
			})
			return conn, err
		}}}
	answer, err := client.Get("http://" + at.String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", answer.Status, text, err)
	}
	return string(text)
}

// TestIngress: a pod's request to a port of a node comes to the service's pod from that node,
// and names who asked. A sample without requests is none.
func TestIngress(t *testing.T) {
	p, err := catalog.FindServiceProxy("ingress")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bridge", "flannel/vxlan", "calico/direct-policy", "cilium/vxlan", "spiderpool/macvlan-routed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needLab(t)
			for _, need := range p.Needs {
				labtest.Feature(t, p.Name, need.Probe())
			}
			all := ingressCells(name)
			l := New(options(newRunner(t), stateDir(t)))
			buildLab(t, l, all)
			for _, cell := range all {
				c := l.clusters[keyOf(cell)]
				from, to, err := sites(cell, c.network.HostNetwork)
				if err != nil {
					t.Fatal(err)
				}
				port := measuredPort(cell.Placement)
				node := netip.AddrPortFrom(c.serviceTarget(cell, to), port)
				web(t, c.ns(to), netip.AddrPortFrom(c.address(to), port))
				idle := l.WatchPath(t.Context(), cell)
				if err := idle(t.Context()); err == nil || !strings.Contains(err.Error(), "took no request") {
					t.Errorf("%s: nothing was asked, and %v", cell.Placement, err)
				}
				watched := l.WatchPath(t.Context(), cell)
				answer := get(t, c.ns(from), node)
				by, asked, _ := strings.Cut(answer, " for ")
				// Networks that masquerade what leaves the pods' range do so on the way to a node.
				own := []string{c.address(from).String(), c.nodes[from.node-1].Address.Addr().String()}
				if !slices.Contains(own, asked) || slices.Contains(own[:1], by) {
					t.Errorf("%s: the pod was asked by %q for %q, not by a node for %s", cell.Placement, by, asked, own)
				}
				if err := watched(t.Context()); err != nil {
					t.Errorf("%s: %v", cell.Placement, err)
				}
			}
		})
	}
}
