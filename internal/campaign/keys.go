package campaign

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"

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
}

// bounds of a number. aboveMin and belowMax take the bound itself out.
type bounds struct {
	min, max           float64
	aboveMin, belowMax bool
}

func (b bounds) hold(v float64) bool {
	return v >= b.min && v <= b.max && !(b.aboveMin && v == b.min) && !(b.belowMax && v == b.max)
}

// String is the bounds in words: "from 1 to 256", "above 0, at most 3600".
func (b bounds) String() string {
	lo, hi := plain(b.min), plain(b.max)
	switch {
	case b.aboveMin && b.belowMax:
		return fmt.Sprintf("between %s and %s, both excluded", lo, hi)
	case b.aboveMin:
		return fmt.Sprintf("above %s, at most %s", lo, hi)
	default:
		return fmt.Sprintf("from %s to %s", lo, hi)
	}
}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

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
	// A congestion control's name has at most 15 bytes (TCP_CA_NAME_MAX).
	algorithmName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,14}$`)
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
	}
	return nil
}

// closed makes an empty list of names allow none, where nil would allow all.
func closed(names []string) []string { return append([]string{}, names...) }

func campaignKeys(known Known) []key {
	return []key{
		{name: "name", required: true, kind: "name", pattern: campaignName, patternDoc: "at most 63 letters, digits, dots, dashes and underscores, a letter or digit first",
			example: "quickstart", doc: "What the campaign is called in reports and in the name of its result directory."},
		{name: "testbed", def: "lab", kind: "testbed", names: closed(known.Testbeds), example: "lab",
			doc: "Where it runs: lab is network namespaces of this machine, hosts the machines of an Ansible inventory over SSH, kubernetes the clusters of a kubeconfig."},
		{name: "clusters", defDoc: "the kubeconfig's current context", kind: "cluster", example: "[{name: a, context: a}, {name: b, context: b}]",
			doc: "The Kubernetes clusters to measure, of the testbed kubernetes. Several are measured in turns, inside the same blocks."},
		{name: "pairs", defDoc: "one pair", kind: "choice of pairs", names: []string{AllPairs, PairsAcrossZones}, example: "all",
			doc: "Of the testbed kubernetes: measure pairs of nodes in place of one, to find the slow one. all is every ordered pair of the nodes that take pods, or of a cluster's nodes or zones; across-zones those of different zones. Pairs without a node in common are measured at the same time, in as few rounds as can be."},
		{name: "networks", defDoc: "required; on kubernetes [host, detected]", kind: "network", names: append(closed(known.Networks), Detected), example: "[host, bridge]",
			doc: "The networks to measure: a name that is built in, or a mapping with a conflist of your own. host is the bare network under them, the baseline of every efficiency: without it no efficiency is computed. The network of a cluster is found out, and is written as detected: on kubernetes, and on hosts that are nodes of one."},
		{name: "ladders", kind: "network with a ladder", names: closed(known.ladderNames()), example: "[flannel/vxlan]",
			doc: "Networks whose cost `cnibench explain` splits into steps: those on the way up from host (a veth pair, a bridge, connection tracking …) are measured beside them, as if they were among networks."},
		{name: "links", def: "[unshaped]", kind: "link", names: closed(known.Links), example: "[1-gigabit, 10-gigabit]",
			doc: "The wire between nodes."},
		{name: "profiles", def: "[default_settings]", kind: "profile", names: closed(known.Profiles), example: "[default_settings, kernel_optimizations]",
			doc: "The sets of node settings under which everything is measured; `cnibench list profiles` tells more of each. Every setting is read back, and a record says which did not take."},
		{name: "paths", def: "[{from: pod, to: pod, placement: inter-host}]", kind: "path", example: "[{from: pod, to: pod, placement: intra-host}]",
			doc: "From where to where. Each is measured on every network; on host a pod is its node, so every path is host-to-host there."},
		{name: "workloads", required: true, kind: "workload", example: "[{name: tcp_rr, message_bytes: [64]}]",
			doc: "The traffic. Every combination of the values of one workload's factors is a cell."},
		{name: "mtu", def: "[1500]", kind: "MTU", bounds: bounds{min: 576, max: 65535}, example: "[1500, 9000]",
			doc: "MTU of the link between nodes, bytes; an encapsulation makes that of the pods smaller. IPv6 needs 1280."},
		{name: "families", def: "[ipv4]", kind: "address family", names: []string{"ipv4", "ipv6"}, example: "[ipv4, ipv6]",
			doc: "The address families."},
		{name: "services", def: "[1]", kind: "number of services", bounds: bounds{min: 1, max: maxServices}, example: "[1, 100, 1000, 10000]",
			doc: "How many services are programmed on each node, one of which the traffic goes to. For paths to cluster-ip and node-port."},
		{name: "service_proxies", def: "[iptables]", kind: "service proxy", names: closed(known.ServiceProxies), example: "[iptables, nftables, ebpf]",
			doc: "What carries services out: kube-proxy's own rule structure in one of its modes, or eBPF at the socket as Cilium does. For paths to cluster-ip and node-port."},
		{name: "policies", def: "[0]", kind: "number of policies", bounds: bounds{min: 0, max: maxPolicies}, example: "[0, 10, 100, 1000]",
			doc: "How many policies traffic is held against in vain before the one that allows it, in the network's own enforcement. Networks that enforce none are measured without."},
		{name: "probes", def: "[cpu, process, counters, stacks, netfilter, memory]", kind: "probe", names: closed(known.Probes), example: "[cpu, process]",
			doc: "What is read beside the traffic: cpu is the time of the machine by mode, process that of the two ends, counters the CPU's cycles and instructions, stacks where in the kernel the time goes; of the nodes, before and after the window, netfilter is the rules that a packet meets and memory what the network holds (docs/nodes.md)."},
		{name: "sampling", def: "{}", kind: "sampling", example: "{seconds: 1, min_blocks: 5}",
			doc: "How much is measured, and when that is enough."},
	}
}

func networkKeys() []key {
	return []key{
		{name: "name", required: true, kind: "network name", pattern: networkName, patternDoc: "small letters, digits, dots, dashes and underscores, with at most one slash (family/variant)",
			example: "mine", doc: "The network's name: a built-in one, or with a conflist a name of your own."},
		{name: "conflist", kind: "path of a conflist", example: "./10-mine.conflist",
			doc: "A CNI configuration list for every node. Relative paths are relative to the campaign file."},
		{name: "conflists", kind: "path of a conflist", minItems: 2, repeats: true, example: "[./node1.conflist, ./node2.conflist]",
			doc: "CNI configuration lists where they differ per node: the first for node 1, and so on. Not together with conflist."},
	}
}

func pathKeys() []key {
	ends := []string{"pod", "host"}
	return []key{
		{name: "from", required: true, kind: "end", names: ends, example: "pod", doc: "Where the client is."},
		{name: "to", required: true, kind: "end", names: append(ends, "cluster-ip", "node-port", "headless"), example: "pod",
			doc: "What it sends to: the server's pod or host; or, from pods, a service's own address or its port at the address of the server's node, behind which the server's pod is. On kubernetes also headless: the address that a service without one of its own publishes."},
		{name: "placement", def: "inter-host", kind: "placement", names: []string{"intra-host", "inter-host"}, example: "intra-host",
			doc: "Both on one node, or on two."},
	}
}

func workloadKeys(known Known) []key {
	names := []string{}
	for _, s := range known.Workloads {
		names = append(names, s.Name)
	}
	size := bounds{min: 1, max: 65536}
	return []key{
		{name: "name", required: true, kind: "workload", names: names, example: "tcp_stream",
			doc: "The traffic; `cnibench list workloads` tells more of each."},
		{name: "test", defDoc: "the workload's first", kind: "test", example: "[TCP_RR]",
			doc: "The tool's own test, in its own words."},
		{name: "protocol", defDoc: "the workload's first", kind: "protocol", example: "[tcp, udp]",
			doc: "The transport, for workloads that offer both."},
		{name: "message_bytes", defDoc: "the workload's own", kind: "message size", bounds: size, example: "[64, 1472]",
			doc: "Size of a message, or of a request, bytes. UDP carries 65507 at most."},
		{name: "response_bytes", defDoc: "as the request", kind: "response size", bounds: size, example: "[1024]",
			doc: "Size of a response, bytes. UDP carries 65507 at most."},
		{name: "streams", defDoc: "[1], or as many as the tool opens by itself", kind: "number of streams", bounds: bounds{min: 1, max: 256}, example: "[1, 8]",
			doc: "Parallel connections or flows."},
		{name: "direction", defDoc: "[forward]", kind: "direction", names: []string{Forward, "reverse", "bidirectional"}, example: "[forward, reverse]",
			doc: "forward is client to server."},
		{name: "rate_bits_per_second", defDoc: "flat out", kind: "rate", bounds: bounds{min: 0, max: 1e13, aboveMin: true}, example: "[1e9]",
			doc: "Payload rate asked of a stream, bits per second, all streams together. For flat out and paced in one campaign list the workload twice."},
		{name: "rate_per_second", defDoc: "closed loop", kind: "rate", bounds: bounds{min: 0, max: 1e9, aboveMin: true}, example: "[1000]",
			doc: "Transactions per second asked of an open loop, all streams together; latency then counts from the intended send time."},
		{name: "burst", defDoc: "[1]", kind: "burst", bounds: bounds{min: 1, max: 1024}, example: "[1, 16]",
			doc: "Transactions under way at once on one stream."},
		{name: "udp_gso", defDoc: "[false]", kind: "switch", example: "[false, true]",
			doc: "UDP segmentation offload. It changes what passes through the stack, so it is a factor."},
		{name: "zero_copy", defDoc: "[false]", kind: "switch", example: "[false, true]",
			doc: "MSG_ZEROCOPY on the sending side."},
		{name: "background_streams", defDoc: "[0]", kind: "number of background streams", bounds: bounds{min: 0, max: 1000}, example: "[0, 100, 400]",
			doc: "TCP connections beside the measured ones, client to server, of 10 Mbit/s each; they are not in the result."},
		{name: "pods", defDoc: "[1]", kind: "number of pods", bounds: bounds{min: 1, max: 200}, example: "[1, 10, 50, 100]",
			doc: "Pods that are added at once."},
		{name: "pin_cpus", defDoc: "[false]", kind: "switch", example: "[false, true]",
			doc: "Pin each end to every second CPU, the client to even and the server to odd ones. cpus: [apart] is the better choice where there are more than two CPUs."},
		{name: "cpus", defDoc: "in a lab [same], for latency_under_load [apart]; elsewhere [free]", kind: "placement on CPUs", names: []string{result.CPUsSame, result.CPUsApart, result.CPUsFree}, example: "[same, apart]",
			doc: "Where the two ends run. same is one CPU for both: the cost of the path alone, without waking another CPU and without a second CPU sharing the work. apart is one CPU each, different cores of one NUMA node. free leaves it to the scheduler, whose choice changes from moment to moment. Two machines have no CPU in common, so same is for a lab, or for paths inside a node."},
		{name: "congestion_control", defDoc: "in a lab and in a lab's Kubernetes [cubic]; elsewhere [as-is]", kind: "congestion control", pattern: algorithmName, patternDoc: "at most 15 small letters, digits, dashes and underscores, a letter first",
			example: "[cubic, bbr]", doc: "The TCP congestion control of both ends, as in net.ipv4.tcp_available_congestion_control. as-is is what the system has. For TCP."},
	}
}

func samplingKeys() []key {
	return []key{
		{name: "seconds", def: "1", kind: "length", bounds: bounds{min: 0, max: 3600, aboveMin: true}, example: "1",
			doc: "Measured length of a sample that is one long window: of published tools, and of traffic with a pace of its own. Seconds."},
		{name: "warmup_seconds", def: "0.2", kind: "length", bounds: bounds{min: 0, max: 3600}, example: "0.2",
			doc: "What is sent before it and not counted, seconds."},
		{name: "min_blocks", def: "5", kind: "number of blocks", bounds: bounds{min: 2, max: 10_000}, example: "5",
			doc: "Blocks (one sample of every cell, in random order) before it may stop. An interval needs two."},
		{name: "max_blocks", def: "20", kind: "number of blocks", bounds: bounds{min: 2, max: 10_000}, example: "20",
			doc: "Blocks after which it stops in any case."},
		{name: "max_seconds", defDoc: "no limit", kind: "time budget", bounds: bounds{min: 0, max: week, aboveMin: true}, example: "300",
			doc: "Time budget of the whole campaign, seconds. The first min_blocks are measured in any case."},
		{name: "target_relative_halfwidth", def: "0.02", kind: "half-width", bounds: bounds{min: 0, max: 1, aboveMin: true, belowMax: true}, example: "0.02",
			doc: "It stops when the interval of every efficiency is within ± this share of it."},
		{name: "until", def: UntilTarget, kind: "end", names: []string{UntilTarget, UntilRanks}, example: UntilRanks,
			doc: "What ends the measuring of a cell. target: its interval is within the target. ranks: and its network differs significantly from every other one in its ranking, or the whole interval of their ratio is within ± twice the target, which is a tie. Blocks are then spent where ranks are still open. cnibench run --for sets it."},
		{name: "confidence", def: "0.95", kind: "confidence", bounds: bounds{min: 0.5, max: 1, aboveMin: true, belowMax: true}, example: "0.95",
			doc: "Confidence of the intervals."},
		{name: "retries", def: "1", kind: "number of retries", bounds: bounds{min: 0, max: 10}, example: "1",
			doc: "How often a failed sample is tried again. Each try is a record of its own."},
		{name: "slice_seconds", def: "0.02", kind: "length", bounds: bounds{min: 0, max: 10}, example: "0.02",
			doc: "A sample of native traffic without a pace of its own is measured in slices of this length, in random turns with the cells that it is compared with, seconds. Slices of shaped links and of long round trips are longer. 0 makes every sample one long window."},
		{name: "slices", defDoc: "as the noise in the first block asks for", kind: "number of slices", bounds: bounds{min: 1, max: 1000}, example: "10",
			doc: "Slices of one sample."},
		{name: "explain_seconds", def: "0.3", kind: "length", bounds: bounds{min: 0, max: 3600}, example: "0.3",
			doc: "Probes are read in separate windows of this length beside sliced samples, as they disturb traffic or need a long window, seconds. 0 leaves them out."},
		{name: "explain_every", def: "8", kind: "number of blocks", bounds: bounds{min: 1, max: 10_000}, example: "8",
			doc: "These windows are in the first block, and in every block after as many more."},
	}
}
