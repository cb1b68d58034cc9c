package campaign

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// key is what a campaign file's key takes beside what its Go type says. The
// parser, the JSON Schema and the manual all read it.
type key struct {
	name string // as in the json tag of its Go field
	doc  string // one or two sentences
	// def is the YAML of the default; "" means none. Where the default depends
	// on something, defDoc says it in words instead.
	def, defDoc string
	example     string // YAML of a value
	required    bool
	// kind is what one value is called in an error: "network", "link".
	kind string
	// names are the allowed texts; nil allows any that pattern matches.
	names      []string
	pattern    *regexp.Regexp
	patternDoc string
	bounds     bounds
	// repeats allows the same value twice in a list.
	repeats bool
	// minItems is the least length of a list; 0 means 1.
	minItems int
	// typ is the type of a workload's factor, whose values go into Workload.Values; nil
	// is that of the field with the key's name.
	typ reflect.Type
}

// bounds of a number.
type bounds = result.Bounds

const (
	maxUDPPayload = 65507 // 65535 less the IPv4 (20) and UDP (8) headers: RFC 791, RFC 768
	minIPv6MTU    = 1280  // RFC 8200 §5
	maxCells      = 100_000
	maxServices   = 30_000
	maxPolicies   = 1000
	week          = 7 * 24 * 3600
)

// What a name that a person invents may look like. Both end up in file names.
var (
	campaignName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	// A namespace is a label of DNS (RFC 1123).
	namespaceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	networkName   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}(/[a-z0-9][a-z0-9._-]{0,31})?$`)
)

// keysOf lists the keys of a mapping in the order in which the manual shows them.
func keysOf(t reflect.Type, known Known) []key {
	switch t {
	case reflect.TypeFor[Campaign]():
		return campaignKeys(known)
	case reflect.TypeFor[Network]():
		return networkKeys()
	case reflect.TypeFor[Cluster]():
		return clusterKeys()
	case reflect.TypeFor[Path]():
		return pathKeys()
	case reflect.TypeFor[Workload]():
		return workloadKeys(known)
	case reflect.TypeFor[Sampling]():
		return samplingKeys()
	case reflect.TypeFor[JobProfile]():
		return jobKeys()
	case reflect.TypeFor[JobOperation]():
		return operationKeys(known)
	}
	return nil
}

// closed makes an empty list of names allow none, where nil would allow all.
func closed(names []string) []string { return append([]string{}, names...) }

func campaignKeys(known Known) []key {
	return []key{
		{name: "name", required: true, kind: "name", pattern: campaignName, patternDoc: "at most 63 letters, digits, dots, dashes and underscores, a letter or digit first",
			example: "quickstart", doc: "The campaign's name in reports, and the start of its result directory's name."},
		{name: "testbed", def: "lab", kind: "testbed", names: closed(known.Testbeds), example: "lab",
			doc: "Where the campaign runs. lab: network namespaces on this machine. hosts: the machines of an Ansible inventory, over SSH. kubernetes: the clusters of a kubeconfig."},
		{name: "clusters", defDoc: "the kubeconfig's current context", kind: "cluster", example: "[{name: a, context: a}, {name: b, context: b}]",
			doc: "The Kubernetes clusters to measure. Requires testbed kubernetes. Several clusters are measured in turns, inside the same blocks."},
		{name: "pairs", defDoc: "one pair", kind: "choice of pairs", names: []string{AllPairs, PairsAcrossZones}, example: "all",
			doc: "Measure many pairs of nodes, to find the slow ones. Requires testbed kubernetes. all: every ordered pair of the nodes that take pods, or of the cluster's nodes or zones. across-zones: the pairs of nodes in different zones. Pairs without a node in common are measured at the same time, in as few rounds as possible."},
		{name: "networks", defDoc: "required; on kubernetes [host, detected]", kind: "network", names: append(closed(known.Networks), Detected), example: "[host, bridge]",
			doc: "The networks to measure: a built-in name, or a mapping with your own conflist. host is the bare network under them and the baseline of every efficiency: without it cnibench computes no efficiency. detected stands for a cluster's own network, on kubernetes and on hosts that are nodes of a cluster."},
		{name: "ladders", kind: "network with a ladder", names: closed(known.ladderNames()), example: "[flannel/vxlan]",
			doc: "Networks whose cost `cnibench explain` splits into steps. cnibench also measures the networks between host and each of them (a veth pair, a bridge, connection tracking …), as if they were listed in networks."},
		{name: "links", def: "[" + result.UnshapedLink + "]", kind: "link", names: closed(known.Links), example: "[1-gigabit, 10-gigabit]",
			doc: "The link between nodes."},
		{name: "profiles", def: "[" + result.DefaultProfile + "]", kind: "profile", names: closed(known.Profiles), example: "[default_settings, kernel_optimizations]",
			doc: "The sets of node settings. Everything is measured under each; `cnibench list profiles` describes them. cnibench reads every setting back, and a record lists those that did not take effect."},
		{name: "paths", def: "[{from: pod, to: pod, placement: inter-host}]", kind: "path", example: "[{from: pod, to: pod, placement: intra-host}]",
			doc: "Between which ends traffic flows. Each path is measured on every network. Network host has no pods, so every path is host-to-host there."},
		{name: "workloads", required: true, kind: "workload", example: "[{name: tcp_rr, message_bytes: [64]}]",
			doc: "The traffic. Each combination of the values of a workload's factors is a cell."},
		{name: "mtu", def: "[1500]", kind: "MTU", bounds: bounds{Min: 576, Max: 65535}, example: "[1500, 9000]",
			doc: "MTU of the link between nodes, bytes. An encapsulation makes the pods' MTU smaller. IPv6 requires 1280."},
		{name: "families", def: "[ipv4]", kind: "address family", names: []string{"ipv4", "ipv6"}, example: "[ipv4, ipv6]",
			doc: "The address families."},
		{name: "services", def: "[1]", kind: "number of services", bounds: bounds{Min: 1, Max: maxServices}, example: "[1, 100, 1000, 10000]",
			doc: "How many services each node is programmed with. Traffic goes to one of them. For paths to cluster-ip and node-port."},
		{name: "service_proxies", def: "[iptables]", kind: "service proxy", names: closed(known.ServiceProxies), example: "[iptables, nftables, ebpf]",
			doc: "What implements services: kube-proxy's rule structure in one of its modes, or eBPF as in Cilium: at the socket, or for NodePorts of other nodes by XDP; or for HTTP to NodePorts an ingress. For paths to cluster-ip and node-port."},
		{name: "policies", def: "[0]", kind: "number of policies", bounds: bounds{Min: 0, Max: maxPolicies}, example: "[0, 10, 100, 1000]",
			doc: "How many non-matching policies the network evaluates before the one that allows the traffic. Networks that enforce no policies are measured without."},
		{name: "encryption", def: "[" + result.EncryptionNone + "]", kind: "encryption", names: result.Encryptions(), example: "[none, wireguard-go]",
			doc: "What encrypts the packets that nodes send each other, as verified in each sample (docs/datapaths.md). wireguard: the kernel's WireGuard. wireguard-go: WireGuard in user space. ipsec: the kernel's ESP with AES-GCM, for networks with a tunnel. Network host, the baseline, is never encrypted, and neither are paths inside a node. Requires testbed lab."},
		{name: "probes", def: "[" + strings.Join(known.Probes, ", ") + "]", kind: "probe", names: closed(known.Probes), example: "[cpu, process]",
			doc: "What is measured next to the traffic; `cnibench list probes` describes each. Most are read at both ends of a window (docs/probes.md). netfilter and memory are read on the nodes before and after it: the rules evaluated for a packet, and the memory of the network (docs/nodes.md)."},
		{name: "sampling", def: "{}", kind: "sampling", example: "{seconds: 1, min_blocks: 5}",
			doc: "How much is measured, and when the campaign stops."},
	}
}

func networkKeys() []key {
	return []key{
		{name: "name", required: true, kind: "network name", pattern: networkName, patternDoc: "small letters, digits, dots, dashes and underscores, with at most one slash (family/variant)",
			example: "mine", doc: "The network's name: a built-in one or, with a conflist, your own."},
		{name: "conflist", kind: "path of a conflist", example: "./10-mine.conflist",
			doc: "A CNI configuration list for every node. Relative paths are relative to the campaign file."},
		{name: "conflists", kind: "path of a conflist", minItems: 2, repeats: true, example: "[./node1.conflist, ./node2.conflist]",
			doc: "CNI configuration lists that differ per node: the first for node 1, and so on. Excludes conflist."},
	}
}

func pathKeys() []key {
	ends := []string{"pod", "host"}
	return []key{
		{name: "from", required: true, kind: "end", names: ends, example: "pod", doc: "Where the client runs."},
		{name: "to", required: true, kind: "end", names: append(ends, "cluster-ip", "node-port", "headless"), example: "pod",
			doc: "What the client sends to. pod and host: the server itself. cluster-ip: the address of a service. node-port: the service's port at the address of the server's node. headless: the pod address that a headless service publishes, on kubernetes only. Services take traffic from pods, and their backend is the server's pod."},
		{name: "placement", def: "inter-host", kind: "placement", names: []string{"intra-host", "inter-host"}, example: "intra-host",
			doc: "Whether client and server are on one node or on two."},
	}
}

// workloadKeys are a workload's name, and the keys of its factors by their table.
func workloadKeys(known Known) []key {
	names := []string{}
	for _, s := range known.Workloads {
		names = append(names, s.Name)
	}
	keys := []key{{name: "name", required: true, kind: "workload", names: names, example: "tcp_stream",
		doc: "The workload; `cnibench list workloads` describes each."}}
	for _, f := range workloadFactors() {
		k := f.Key()
		keys = append(keys, key{name: f.Name, doc: k.Doc, defDoc: k.Default, example: k.Example, kind: k.Kind,
			names: k.Names, pattern: k.Pattern, patternDoc: k.PatternDoc, bounds: k.Bounds, typ: reflect.SliceOf(f.Type())})
	}
	return keys
}

// workloadFactors are the factors that a campaign writes for a workload, in the order
// in which the manual shows them.
func workloadFactors() []result.Factor {
	return result.FactorsBy(func(o result.Order) int { return o.Key })
}

func samplingKeys() []key {
	return []key{
		{name: "seconds", def: "1", kind: "length", bounds: bounds{Min: 0, Max: 3600, AboveMin: true}, example: "1",
			doc: "Measured length of a sample that is one long window, seconds. Published tools and paced traffic are measured in one long window."},
		{name: "warmup_seconds", def: "0.2", kind: "length", bounds: bounds{Min: 0, Max: 3600}, example: "0.2",
			doc: "Traffic before the window that is not counted, seconds."},
		{name: "min_blocks", def: "5", kind: "number of blocks", bounds: bounds{Min: 2, Max: 10_000}, example: "5",
			doc: "Least number of blocks before a campaign may stop. A block is one sample of every cell, in random order. An interval needs two blocks."},
		{name: "max_blocks", def: "20", kind: "number of blocks", bounds: bounds{Min: 2, Max: 10_000}, example: "20",
			doc: "The campaign stops after this many blocks at the latest."},
		{name: "max_seconds", defDoc: "no limit", kind: "time budget", bounds: bounds{Min: 0, Max: week, AboveMin: true}, example: "300",
			doc: "Time budget of a run, seconds. The first min_blocks are always measured. A run that is resumed has the budget again."},
		{name: "target_relative_halfwidth", def: "0.02", kind: "half-width", bounds: bounds{Min: 0, Max: 1, AboveMin: true, BelowMax: true}, example: "0.02",
			doc: "The campaign stops when every efficiency's interval is within ± this share of it."},
		{name: "until", def: UntilTarget, kind: "end", names: []string{UntilTarget, UntilRanks}, example: UntilRanks,
			doc: "When cnibench stops measuring a cell. target: its interval is within the target. ranks: in addition, its network differs significantly from every other in its ranking, or the two are tied, that is, the whole interval of their ratio is within ± twice the target. Blocks are then spent where ranks are still open. cnibench run --for sets ranks."},
		{name: "confidence", def: "0.95", kind: "confidence", bounds: bounds{Min: 0.5, Max: 1, AboveMin: true, BelowMax: true}, example: "0.95",
			doc: "Confidence level of the intervals."},
		{name: "retries", def: "1", kind: "number of retries", bounds: bounds{Min: 0, Max: 10}, example: "1",
			doc: "How often cnibench retries a failed sample. Each attempt has its own record."},
		{name: "slice_seconds", def: "0.02", kind: "length", bounds: bounds{Min: 0, Max: 10}, example: "0.02",
			doc: "Length of a slice, seconds. Samples of unpaced native traffic are measured in slices, in random turns with the cells that they are compared with. Slices on shaped links, of long round trips, and of TCP in both directions at once are longer. 0 makes every sample one long window."},
		{name: "slices", defDoc: "chosen from the noise in the first block", kind: "number of slices", bounds: bounds{Min: 1, Max: 1000}, example: "10",
			doc: "Slices per sample."},
		{name: "sliced_seconds", defDoc: "as long as slices makes them", kind: "length", bounds: bounds{Min: 0, Max: 3600, AboveMin: true}, example: "0.08",
			doc: "Least length of the slices of a sample together, seconds. A sample has as many more slices as that takes. Samples of short slices then count as much time as those of long ones."},
		{name: "explain_seconds", def: "0.3", kind: "length", bounds: bounds{Min: 0, Max: 3600}, example: "0.3",
			doc: "Length of the separate windows in which probes of sliced samples are read, seconds. They are separate because probes disturb traffic or need a long window. 0 omits these windows."},
		{name: "explain_every", def: "8", kind: "number of blocks", bounds: bounds{Min: 1, Max: 10_000}, example: "8",
			doc: "How often these windows occur: in the first block, and again after every so many blocks. A later block has none if all windows up to its own would take more than a third of max_seconds."},
	}
}
