package labkubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/plain"
)

// ciliumMode is one of the ways in which Cilium carries packets.
type ciliumMode struct {
	name, summary string
	// settings of the ConfigMap make the mode, in addition to ciliumSettings.
	settings map[string]string
	// reports is what the status of an agent has in this mode: values by the names of the
	// fields in its API (models.StatusResponse of api/v1, v1.18.5).
	reports map[string]string
	// kubeProxy is CNI.KubeProxy: "none" where the mode is about services, or about packets
	// that pass no iptables, so that Cilium must replace kube-proxy.
	kubeProxy string
	ipv6      bool // the others were not seen to work with it
	needs     []netns.Feature
}

// ciliumModes are those that a lab's Kubernetes can have. The first part of a name says how
// packets get to other nodes; what follows a + is on in addition.
func ciliumModes() []ciliumMode {
	return []ciliumMode{
		{name: "native", summary: "eBPF, routes between nodes", settings: overRoutes()},
		{
			name: "vxlan", summary: "eBPF, VXLAN between nodes", ipv6: true, needs: []netns.Feature{netns.VXLAN()},
			settings: map[string]string{"routing-mode": "tunnel", "tunnel-protocol": "vxlan"},
			reports:  map[string]string{"routing.tunnel-protocol": "vxlan"},
		},
		{
			name: "geneve", summary: "eBPF, Geneve between nodes", needs: []netns.Feature{netns.Geneve()},
			settings: map[string]string{"routing-mode": "tunnel", "tunnel-protocol": "geneve"},
			reports:  map[string]string{"routing.tunnel-protocol": "geneve"},
		},
		{
			name: "native+hubble", summary: "native with Hubble, which sees the flows of all pods",
			settings: overRoutes("enable-hubble", "true"),
			reports:  map[string]string{"hubble.state": "Ok"},
		},
		{
			name: "native+host-firewall", summary: "native with policies for the nodes themselves: what nodes send and receive is checked too",
			settings: overRoutes("enable-host-firewall", "true"),
			reports:  map[string]string{"host-firewall.mode": "Enabled"},
		},
		{
			name: "native+legacy-routing", summary: "native whose packets pass the node's IP layer and iptables, as on kernels before 5.10", kubeProxy: "none",
			settings: overRoutes(legacyRouting, "true"),
		},
		{
			name: "native+pod-lb", summary: "native whose pods' services are carried out at their devices, not at their sockets, as service meshes need it", kubeProxy: "none",
			settings: overRoutes("bpf-lb-sock-hostns-only", "true"),
			reports:  map[string]string{"kube-proxy-replacement.features.bpfSocketLBHostnsOnly": "true"},
		},
		{
			name: "native+dsr", summary: "native whose node ports answer from the backend's node directly (DSR)", kubeProxy: "none",
			settings: overRoutes("bpf-lb-mode", "dsr"),
			reports:  map[string]string{"kube-proxy-replacement.features.nodePort.mode": "DSR"},
		},
		{
			name: "native+bigtcp", summary: "native with TCP segments of up to 192 KiB (BIG TCP)", kubeProxy: "none", needs: []netns.Feature{netns.BigTCP()},
			settings: overRoutes("enable-ipv4-big-tcp", "true"),
			reports:  map[string]string{"ipv4-big-tcp.enabled": "true", "ipv4-big-tcp.maxGRO": "196608", "ipv4-big-tcp.maxGSO": "196608"},
		},
		{
			name: "native+netkit", summary: "native whose pods have netkit devices in place of veth pairs", kubeProxy: "none", needs: []netns.Feature{netns.Netkit()},
			settings: overRoutes("datapath-mode", "netkit"),
			reports:  map[string]string{"datapath-mode": "netkit"},
		},
		{
			name: "native+wireguard", summary: "native with the kernel's WireGuard between pods of different nodes", needs: []netns.Feature{netns.WireGuard()},
			settings: overRoutes("enable-wireguard", "true"),
			reports:  map[string]string{"encryption.mode": "Wireguard"},
		},
		{
			// With it the node's IP layer forwards all packets, because it encrypts them.
			name: "native+ipsec", summary: "native with the kernel's IPsec (AES-GCM) between pods of different nodes", needs: []netns.Feature{netns.ESP()},
			settings: overRoutes(ipsec, "true"),
			reports:  map[string]string{"encryption.mode": "IPsec", "routing.intra-host-routing-mode": "Legacy"},
		},
	}
}

// ipsec is the setting that has agents encrypt with the kernel's IPsec. It takes a file with a
// key.
const ipsec = "enable-ipsec"

// legacyRouting is the setting that has the node's IP layer forward packets. Agents set it
// themselves where they cannot do without.
const legacyRouting = "enable-host-legacy-routing"

// overRoutes are the settings of routes between nodes, and others after them.
func overRoutes(more ...string) map[string]string {
	settings := map[string]string{
		"routing-mode": "native", "auto-direct-node-routes": "true", "ipv4-native-routing-cidr": network.Pods().String(),
	}
	for pair := range slices.Chunk(more, 2) {
		settings[pair[0]] = pair[1]
	}
	return settings
}

// reported is what the status of each node's agent must have. Without kube-proxy its programs
// forward packets past the node's IP layer, unless the mode is about that.
func (m ciliumMode) reported(kubeProxy string) map[string]string {
	all := map[string]string{
		"kube-proxy-replacement.mode": "False", "masquerading.mode": "iptables",
		"routing.inter-host-routing-mode": "Native", "routing.intra-host-routing-mode": "Legacy",
	}
	if m.settings["routing-mode"] == "tunnel" {
		all["routing.inter-host-routing-mode"] = "Tunnel"
	}
	if kubeProxy == "none" {
		all["kube-proxy-replacement.mode"], all["masquerading.mode"] = "True", "BPF"
		if m.settings[legacyRouting] != "true" {
			all["routing.intra-host-routing-mode"] = "BPF"
		}
	}
	maps.Copy(all, m.reports)
	return all
}

// ciliumWaits is how often the wait for an agent's status goes into the patience with a start:
// 30 s, as an agent renews parts of its status every five seconds.
const ciliumWaits = 6

// verifyCilium compares the status of a node's agent with what its mode must report: an agent
// that lacks something falls back, and only its log shows that.
func (c *Cluster) verifyCilium(ctx context.Context, n *Node, want map[string]string) error {
	within := cmp.Or(c.options.Patience, patience) / ciliumWaits
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it is not in the mode %s after %s", c.cni.Name, within))
	defer cancel()
	err := c.wait(ctx, "cilium-agent on "+n.Name, func() error {
		status, err := ciliumStatus(ctx, n)
		if err == nil {
			err = differences(status, want)
		}
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond): // its answer is long
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w\nits log has:\n%s", err, fallbacks(filepath.Join(c.Dir(), "log", n.Name+"-cilium-agent.log")))
	}
	return nil
}

// fallbacks are the last lines of an agent's log that may say why it fell back.
func fallbacks(log string) string {
	data, err := os.ReadFile(log)
	if err != nil {
		return "  " + err.Error()
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, "level=warn") || strings.Contains(line, "level=error") || strings.Contains(line, "alling back") {
			found = append(found, "  "+plain.Text(strings.TrimSpace(line)))
		}
	}
	return strings.Join(found[max(0, len(found)-5):], "\n")
}

// ciliumStatus asks a node's agent for its status, as `cilium-dbg status` does. Its socket is
// seen through a process in the node's mounts.
func ciliumStatus(ctx context.Context, n *Node) (map[string]any, error) {
	socket := fmt.Sprintf("/proc/%d/root/run/cilium/cilium.sock", n.holder)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://cilium/v1/healthz", http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its status: %s", res.Status)
	}
	var status map[string]any
	if err := json.NewDecoder(io.LimitReader(res.Body, 4<<20)).Decode(&status); err != nil {
		return nil, fmt.Errorf("its status: %w", err)
	}
	return status, nil
}

// differences says which fields of a status are not as they must be; nil where all are.
func differences(status map[string]any, want map[string]string) error {
	var other []string
	for _, field := range slices.Sorted(maps.Keys(want)) {
		if got := fieldOf(status, field); got != want[field] {
			other = append(other, fmt.Sprintf("%s is %s, want %s", field, got, want[field]))
		}
	}
	if len(other) > 0 {
		return fmt.Errorf("it reports that %s", strings.Join(other, "; "))
	}
	return nil
}

// fieldOf is a field's value as text, by the names that lead to it.
func fieldOf(status map[string]any, path string) string {
	var at any = status
	for name := range strings.SplitSeq(path, ".") {
		fields, _ := at.(map[string]any)
		at = fields[name]
	}
	if at == nil {
		return "absent"
	}
	return fmt.Sprint(at)
}
