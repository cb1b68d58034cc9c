package antrea

import (
	_ "embed"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	texttemplate "text/template"

	"github.com/cnibench/cnibench/internal/network"
)

//go:embed pipeline.flows
var antreaFlows string

//go:embed pod.flows
var podFlows string

// virtualMAC is the destination of all tunnelled packets.
const virtualMAC = "aa:bb:cc:dd:ee:ff"

// Tables are the tables of Antrea's pipeline; a table's number is its
// place here.
func Tables() []string {
	return []string{
		"PipelineRootClassifier", "ARPSpoofGuard", "ARPResponder", "Classifier", "SpoofGuard", "UnSNAT", "ConntrackZone", "ConntrackState",
		"PreRoutingClassifier", "ServiceMark", "SessionAffinity", "ServiceLB", "EndpointDNAT",
		"AntreaPolicyEgressRule", "EgressRule", "EgressDefaultRule", "EgressMetric",
		"L3Forwarding", "EgressMark", "L3DecTTL", "SNATMark", "SNAT", "L2ForwardingCalc", "TrafficControl",
		"IngressSecurityClassifier", "AntreaPolicyIngressRule", "IngressRule", "IngressDefaultRule", "IngressMetric",
		"ConntrackCommit", "Output",
	}
}

// AntreaPeer is a node as its peers' flows have it.
type antreaPeer struct {
	Gateway, Node netip.Addr
	Pods          netip.Prefix
}

func newAntreaPeer(n network.Node) antreaPeer {
	return antreaPeer{Gateway: gatewayOf(n), Node: n.Address.Addr(), Pods: n.PodCIDR}
}

// gatewayOf is the address of a node's gateway, the first of its pods'.
func gatewayOf(n network.Node) netip.Addr { return n.PodCIDR.Addr().Next() }

// pipeline is the flows of a node without its pods'.
func pipeline(self network.Node, nodes []network.Node, mac net.HardwareAddr, tunnel bool) (string, error) {
	data := struct {
		antreaPeer
		GatewayMAC, VirtualMAC  string
		GatewayPort, TunnelPort int
		Tunnel                  bool
		Peers                   []antreaPeer
	}{
		antreaPeer: newAntreaPeer(self), GatewayMAC: mac.String(), VirtualMAC: virtualMAC,
		GatewayPort: antreaGatewayPort, TunnelPort: antreaTunnelPort, Tunnel: tunnel,
	}
	for _, peer := range antreaPeers(self, nodes) {
		data.Peers = append(data.Peers, newAntreaPeer(peer))
	}
	return openFlow(antreaFlows, Tables(), data)
}

// pod is a pod as its node's flows have it.
type pod struct {
	Address         netip.Addr
	MAC, GatewayMAC string
	Port            int
	Cookie          uint32 // identifies its flows
}

// openFlow fills a template of flows, puts numbers for the tables' names and
// leaves comments out.
func openFlow(text string, tables []string, data any) (string, error) {
	t, err := texttemplate.New("flows").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var filled strings.Builder
	if err := t.Execute(&filled, data); err != nil {
		return "", err
	}
	number := map[string]string{}
	for i, name := range tables {
		number[name] = strconv.Itoa(i)
	}
	named := regexp.MustCompile(`(table=|goto_table:|resubmit\(,)([A-Za-z0-9]+)`)
	var flows, unknown []string
	for line := range strings.Lines(filled.String()) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		flows = append(flows, named.ReplaceAllStringFunc(line, func(s string) string {
			parts := named.FindStringSubmatch(s)
			n, ok := number[parts[2]]
			if !ok {
				unknown = append(unknown, parts[2])
			}
			return parts[1] + n
		}))
	}
	if len(unknown) > 0 {
		return "", fmt.Errorf("flows name tables that do not exist: %s", strings.Join(unknown, ", "))
	}
	return strings.Join(flows, "\n") + "\n", nil
}
