package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	texttemplate "text/template"
)

// conflistData is what the templates beside the networks are filled from.
type conflistData struct {
	PodCIDR, Pods, First, Last, Device string
	Services                           string // ServiceRange
	PodMTU                             int
	Node                               Node
	// Ranges are host-local's ranges of the node's pods, of each family; in
	// SharedRanges the subnet is that of all nodes' pods. Routes are to all pods.
	Ranges, SharedRanges, Routes string
	// Underlay is the nodes' own subnet, of which this node may give
	// UnderlayFirst to UnderlayLast to pods.
	Underlay, UnderlayFirst, UnderlayLast string
	// Gateway is the address of a node's bridge, where that is none of the
	// range's first.
	Gateway string
}

// Template makes a Network's Conflist of a text/template.
func Template(text string, n Network) func(Node, []Node) ([]byte, error) {
	return func(self Node, _ []Node) ([]byte, error) {
		t, err := texttemplate.New(n.Name).Option("missingkey=error").Parse(text)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		underlay := underlayRange(self)
		ranges, shared, routes := hostLocalRanges(self)
		err = t.Execute(&b, conflistData{
			PodCIDR: self.PodCIDR.String(), Pods: Pods().String(), Services: ServiceRange().String(),
			First: self.PodCIDR.Addr().Next().Next().String(), Last: LastAddress(self.PodCIDR).String(),
			Device: self.Device, PodMTU: n.PodMTUOn(self), Node: self,
			Ranges: ranges, SharedRanges: shared, Routes: routes,
			Underlay:      self.Address.Masked().String(),
			UnderlayFirst: underlay.Addr().Next().String(), UnderlayLast: LastAddress(underlay).String(),
			Gateway: self.PodCIDR.Addr().Next().String(),
		})
		if err != nil {
			return nil, err
		}
		if !json.Valid(b.Bytes()) {
			return nil, fmt.Errorf("conflist of %s: not valid JSON:\n%s", n.Name, b.Bytes())
		}
		return b.Bytes(), nil
	}
}

// hostLocalRanges are the fields Ranges, SharedRanges and Routes of a node.
func hostLocalRanges(self Node) (ranges, shared, routes string) {
	add := func(pods, all netip.Prefix, first, last netip.Addr) {
		comma := ""
		if ranges != "" {
			comma = ", "
		}
		ranges += fmt.Sprintf(`%s[{"subnet": "%s"}]`, comma, pods)
		shared += fmt.Sprintf(`%s[{"subnet": "%s", "rangeStart": "%s", "rangeEnd": "%s"}]`, comma, all, first, last)
		routes += fmt.Sprintf(`%s{"dst": "%s"}`, comma, all)
	}
	add(self.PodCIDR, Pods(), self.PodCIDR.Addr().Next().Next(), LastAddress(self.PodCIDR))
	if self.Dual() {
		first := self.PodCIDR6.Addr().Next().Next()
		last := self.PodCIDR6.Addr().As16()
		last[14], last[15] = 0xff, 0xfe
		add(self.PodCIDR6, Pods6(), first, netip.AddrFrom16(last))
	}
	return "[" + ranges + "]", "[" + shared + "]", "[" + routes + "]"
}

// underlayRange is the part of the nodes' subnet that is one node's to give to
// pods: 198.18.N.0/24 of 198.18.0.0/16, of which nodes themselves have the
// addresses 198.18.0.1 to 198.18.0.254.
func underlayRange(self Node) netip.Prefix {
	a := self.Address.Masked().Addr().As4()
	a[2] = byte(self.Index)
	return netip.PrefixFrom(netip.AddrFrom4(a), 24)
}
