// Package netns is the one door to network namespaces and, with package
// network, to netlink.
package netns

// NS is a named network namespace: Path is a file that holds it,
// /run/netns/cnb-….
type NS struct {
	Name string
	Path string
}

// Feature is something that a kernel has or lacks, found by trying it in a
// namespace made for that.
type Feature struct {
	Name  string // "vxlan"
	Doc   string // what it is for, one line
	Mend  string // what would bring it: "modprobe vxlan, or a kernel with CONFIG_VXLAN"
	Probe func() error
}
