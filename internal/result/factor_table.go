package result

import (
	"fmt"
	"regexp"
	"strconv"
)

// algorithmName is what the name of a congestion control looks like: the kernel allows
// 15 bytes (TCP_CA_NAME_MAX).
var algorithmName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,14}$`)

// maxMessage bounds the size of a message, bytes, and maxResponse that of a response.
// Workloads may have a smaller bound.
const (
	maxMessage  = 1 << 20
	maxResponse = 64 << 10
)

// Cell is one value of each factor: what one sample measures. It is
// comparable, so it serves as a map key; a factor that does not apply to the
// workload is its zero value and is absent in JSON.
type Cell struct {
	// Network is the network's name, "flannel/vxlan"; HostNetwork is the baseline.
	Network string `json:"network"`
	// Cluster is the campaign's name of the Kubernetes cluster that was measured;
	// absent where the testbed is none.
	Cluster string `json:"cluster,omitempty"`
	// ClientNode and ServerNode name the nodes of both ends where pairs of nodes
	// are measured; absent otherwise.
	ClientNode string `json:"client_node,omitempty"`
	ServerNode string `json:"server_node,omitempty"`
	// Path is from where to where: one of the Path constants.
	Path string `json:"path"`
	// Placement is one of the Placement constants.
	Placement string `json:"placement"`
	// Link names the wire between nodes: "unshaped", "1-gigabit", …
	Link string `json:"link"`
	// Profile names the set of node settings: "default_settings", …
	Profile string `json:"profile"`
	// MTU is the link's MTU in bytes as asked for; a pod's own MTU, which an
	// encapsulation makes smaller, is recorded with the metrics.
	MTU int `json:"mtu"`
	// Family is "ipv4" or "ipv6"; absent means ipv4.
	Family string `json:"family,omitempty"`
	// Services is how many services are programmed on each node, one of which the
	// traffic goes to; absent on paths that lead to none.
	Services int `json:"services,omitempty"`
	// ServiceProxy is what carries the services out: "iptables", "nftables",
	// "ipvs", "ebpf", "xdp"; absent on paths that lead to none.
	ServiceProxy string `json:"service_proxy,omitempty"`
	// Policies is how many policies the traffic is checked against before the one that
	// allows it; absent means none, and networks that enforce no policy.
	Policies int `json:"policies,omitempty"`
	// Encryption is what encrypts the packets that nodes send each other: one of the
	// Encryption constants; absent means nothing does, as inside a node and on the bare
	// network.
	Encryption string `json:"encryption,omitempty"`
	// Workload is the traffic's name: "tcp_stream", "iperf3", …
	Workload string `json:"workload"`
	// Test is the workload's own variant, in the tool's words: netperf's
	// "TCP_RR", sockperf's "ping-pong", redis-benchmark's "get".
	Test string `json:"test,omitempty"`
	// Protocol is "tcp" or "udp" for workloads that offer both.
	Protocol string `json:"protocol,omitempty"`
	// MessageBytes is the size of a message, or of a request.
	MessageBytes int `json:"message_bytes,omitempty"`
	// ResponseBytes is the size of a response where it differs from the request.
	ResponseBytes int `json:"response_bytes,omitempty"`
	// Streams is the number of parallel connections or flows.
	Streams int `json:"streams,omitempty"`
	// Direction is "reverse" or "bidirectional"; absent means client to server.
	Direction string `json:"direction,omitempty"`
	// RateBitsPerSecond is the rate asked of a paced stream, all streams
	// together; absent means flat out.
	RateBitsPerSecond float64 `json:"rate_bits_per_second,omitempty"`
	// RatePerSecond is the rate of transactions asked of an open loop, all
	// streams together; absent means closed loop.
	RatePerSecond float64 `json:"rate_per_second,omitempty"`
	// Burst is how many transactions are under way at once on one stream;
	// absent means one.
	Burst int `json:"burst,omitempty"`
	// UDPGSO reports that UDP segmentation offload is used. It changes what is on
	// the way through the stack, so it is a factor.
	UDPGSO bool `json:"udp_gso,omitempty"`
	// ZeroCopy reports that MSG_ZEROCOPY is used.
	ZeroCopy bool `json:"zero_copy,omitempty"`
	// Pods is how many pods pod_setup adds at once; absent for other workloads.
	Pods int `json:"pods,omitempty"`
	// BackgroundStreams is the number of TCP connections of 10 Mbit/s each in addition to
	// the measured ones; absent means none.
	BackgroundStreams int `json:"background_streams,omitempty"`
	// Ranks is the number of ends of a workload with many ends, RanksPerNode how many of
	// them are on one node; absent means one. Ranks fill one node after the other.
	Ranks        int `json:"ranks,omitempty"`
	RanksPerNode int `json:"ranks_per_node,omitempty"`
	// Algorithm is how such a workload does its operation: "ring", "pairwise" …
	Algorithm string `json:"algorithm,omitempty"`
	// MatrixSize is N, the order of the matrix that HPL solves: it has N × N numbers of 8
	// bytes.
	MatrixSize int `json:"matrix_size,omitempty"`
	// BlockSize is NB, the size of the blocks that HPL divides that matrix into; absent
	// means 64.
	BlockSize int `json:"block_size,omitempty"`
	// PinCPUs reports that each end is pinned to CPUs of its own.
	PinCPUs bool `json:"pin_cpus,omitempty"`
	// CongestionControl is the TCP algorithm that both ends use; absent means as
	// the system has it.
	CongestionControl string `json:"congestion_control,omitempty"`
	// CPUs is where the two ends run: CPUsSame or CPUsApart; absent means where the
	// scheduler puts them.
	CPUs string `json:"cpus,omitempty"`
}

// factorTable yields one entry for each field of Cell, in the order in which cells are
// sorted. An added factor is a field, an entry with the next free positions in Order, and
// the code that acts on it.
func factorTable(yield func(Factor) bool) {
	for _, f := range placeFactors() {
		if !yield(f) {
			return
		}
	}
	for _, f := range trafficFactors() {
		if !yield(f) {
			return
		}
	}
	for _, f := range loadFactors() {
		if !yield(f) {
			return
		}
	}
	for _, f := range jobFactors() {
		if !yield(f) {
			return
		}
	}
	for _, f := range optionFactors() {
		if !yield(f) {
			return
		}
	}
	for _, f := range nameFactors() {
		if !yield(f) {
			return
		}
	}
}

// placeFactors are what nodes and links are like. Arrays keep the sorting of cells free
// of allocations for the table.
func placeFactors() [8]Factor {
	return [...]Factor{
		{Name: "link", Of: func(c *Cell) any { return &c.Link }, Order: Order{Column: 7, Filter: 5, Levels: 3},
			Filter: "link", Reference: UnshapedLink},
		{Name: "profile", Of: func(c *Cell) any { return &c.Profile }, Order: Order{Column: 8, Filter: 6, Levels: 2},
			Filter: "profile", Reference: DefaultProfile},
		{Name: "mtu", Of: func(c *Cell) any { return &c.MTU }, Order: Order{Column: 9, Filter: 7, Levels: 4},
			Column: "mtu_bytes", Label: "MTU", Filter: "MTU", Reference: 1500},
		{Name: "service_proxy", Of: func(c *Cell) any { return &c.ServiceProxy }, Order: Order{Column: 12, Filter: 8, Levels: 6},
			Label: "service proxy", Plural: "service proxies", Filter: "services", Unsaid: "none", OnHost: ""},
		{Name: "services", Of: func(c *Cell) any { return &c.Services }, Order: Order{Column: 11, Filter: 8, Levels: 7},
			Plural: "numbers of services", Filter: "services", Unsaid: "none", OnHost: 0},
		{Name: "policies", Of: func(c *Cell) any { return &c.Policies }, Order: Order{Column: 13, Filter: 9, Levels: 8},
			Plural: "numbers of policies", Filter: "policies", Unsaid: "none", OnHost: 0},
		{Name: "encryption", Of: func(c *Cell) any { return &c.Encryption }, Order: Order{Column: 35, Filter: 24, Levels: 23},
			Plural: "encryptions", Default: EncryptionNone, Absent: EncryptionNone, Filter: "encryption", Unsaid: EncryptionNone, OnHost: ""},
		{Name: "placement", Of: func(c *Cell) any { return &c.Placement }, Order: Order{Column: 6, Filter: 4}, Filter: "placement"},
	}
}

// trafficFactors are what is sent.
func trafficFactors() [7]Factor {
	return [...]Factor{
		{Name: "workload", Of: func(c *Cell) any { return &c.Workload }, Order: Order{Column: 14, Words: 1, Filter: 10}, Filter: "workload", Unsaid: "none"},
		{Name: "test", Of: func(c *Cell) any { return &c.Test }, Order: Order{Column: 15, Words: 2, Filter: 10, Key: 1},
			Key: func() Key {
				return Key{Kind: "test", Default: "the workload's first", Example: "[TCP_RR]", Doc: "The tool's test, as the tool calls it."}
			},
			Filter: "workload", Unsaid: "none"},
		{Name: "protocol", Of: func(c *Cell) any { return &c.Protocol }, Order: Order{Column: 16, Words: 3, Filter: 10, Key: 2},
			Key: func() Key {
				return Key{Kind: "protocol", Default: "the workload's first", Example: "[tcp, udp]", Doc: "The transport protocol, for workloads that offer both."}
			},
			Filter: "workload", Unsaid: "none"},
		{Name: "family", Of: func(c *Cell) any { return &c.Family }, Order: Order{Column: 10, Words: 15, Filter: 17, Levels: 5},
			Label: "IP family", Plural: "IP families", Default: "ipv4", Absent: "ipv4", Filter: "family", Unsaid: "ipv4",
			Words: func(c Cell) string { return wordsIf(c.Family == "ipv6", "ipv6") }},
		{Name: "direction", Of: func(c *Cell) any { return &c.Direction }, Order: Order{Column: 17, Words: 4, Filter: 11, Levels: 9, Key: 6},
			Key: func() Key {
				return Key{Kind: "direction", Default: "[forward]", Names: []string{"forward", "reverse", "bidirectional"}, Example: "[forward, reverse]",
					Doc: "forward sends from client to server."}
			},
			Default: "forward", Absent: "client to server", Filter: "direction", Unsaid: "client to server"},
		{Name: "message_bytes", Of: func(c *Cell) any { return &c.MessageBytes }, Order: Order{Column: 18, Words: 5, Filter: 12, Levels: 17, Key: 3},
			Key: func() Key {
				return Key{Kind: "message size", Default: "the workload's own", Bounds: Bounds{Min: 1, Max: maxMessage}, Example: "[64, 1472]",
					Doc: "Size of a message or request, bytes. UDP carries at most 65507. tcp_rr and operations of ranks have messages of up to 1 MiB, other workloads of up to 64 KiB."}
			},
			Label: "message size (bytes)", Plural: "message sizes", Filter: "message", FilterUnit: "B", Unsaid: "unnamed", Words: sizeWords},
		{Name: "response_bytes", Of: func(c *Cell) any { return &c.ResponseBytes }, Order: Order{Column: 19, Key: 4},
			Key: func() Key {
				return Key{Kind: "response size", Default: "as the request", Bounds: Bounds{Min: 1, Max: maxResponse}, Example: "[1024]",
					Doc: "Size of a response, bytes. UDP carries at most 65507."}
			},
			Settle: func(c *Cell) {
				if c.ResponseBytes == c.MessageBytes {
					c.ResponseBytes = 0
				}
			}},
	}
}

// loadFactors are how much of it is sent at a time.
func loadFactors() [6]Factor {
	return [...]Factor{
		{Name: "streams", Of: func(c *Cell) any { return &c.Streams }, Order: Order{Column: 20, Words: 6, Filter: 13, Levels: 18, Key: 5},
			Key: func() Key {
				return Key{Kind: "number of streams", Default: "[1], or as many as the tool opens", Bounds: Bounds{Min: 1, Max: 256}, Example: "[1, 8]",
					Doc: "Parallel connections or flows."}
			},
			Plural: "numbers of streams", Filter: "streams", Unsaid: "unnamed", Reference: 1,
			Words: func(c Cell) string { return wordsIf(c.Streams > 1, "× "+strconv.Itoa(c.Streams)) }},
		{Name: "burst", Of: func(c *Cell) any { return &c.Burst }, Order: Order{Column: 21, Words: 7, Filter: 15, Levels: 10, Key: 9},
			Key: func() Key {
				return Key{Kind: "burst", Default: "[1]", Bounds: Bounds{Min: 1, Max: 1024}, Example: "[1, 16]", Doc: "Outstanding transactions on one stream."}
			},
			Plural: "burst sizes", Default: 1, Filter: "burst", Unsaid: "1",
			Words: func(c Cell) string { return wordsIf(c.Burst > 1, "burst "+strconv.Itoa(c.Burst)) }},
		{Name: "rate_bits_per_second", Of: func(c *Cell) any { return &c.RateBitsPerSecond }, Order: Order{Column: 22, Words: 8, Filter: 14, Key: 7},
			Key: func() Key {
				return Key{Kind: "rate", Default: "flat out", Bounds: Bounds{Max: 1e13, AboveMin: true}, Example: "[1e9]",
					Doc: "Requested payload rate of all streams together, bits per second. To measure both flat out and paced in one campaign, list the workload twice."}
			},
			Filter: "rate", Unsaid: "flat out", FilterWords: bitRate,
			Words: func(c Cell) string { return wordsIf(c.RateBitsPerSecond > 0, "at "+bitRate(c)) }},
		{Name: "rate_per_second", Of: func(c *Cell) any { return &c.RatePerSecond }, Order: Order{Column: 23, Words: 9, Filter: 14, Key: 8},
			Key: func() Key {
				return Key{Kind: "rate", Default: "closed loop", Bounds: Bounds{Max: 1e9, AboveMin: true}, Example: "[1000]",
					Doc: "Requested transactions per second of an open loop, all streams together. Latency then counts from the intended send time."}
			},
			Filter: "rate", Unsaid: "flat out", FilterWords: func(c Cell) string { return wordsIf(c.RateBitsPerSecond <= 0, rate(c)) },
			Words: func(c Cell) string { return wordsIf(c.RatePerSecond > 0, "at "+rate(c)) }},
		{Name: "pods", Of: func(c *Cell) any { return &c.Pods }, Order: Order{Column: 26, Words: 10, Key: 13},
			Key: func() Key {
				return Key{Kind: "number of pods", Default: "[1]", Bounds: Bounds{Min: 1, Max: 200}, Example: "[1, 10, 50, 100]", Doc: "How many pods are added at the same time."}
			},
			Words: func(c Cell) string { return wordsIf(c.Pods > 0, "pods "+strconv.Itoa(c.Pods)) }},
		{Name: "background_streams", Of: func(c *Cell) any { return &c.BackgroundStreams }, Order: Order{Column: 27, Words: 11, Filter: 16, Levels: 11, Key: 12},
			Key: func() Key {
				return Key{Kind: "number of background streams", Default: "[0]", Bounds: Bounds{Max: 1000}, Example: "[0, 100, 400]",
					Doc: "Additional TCP connections from client to server, 10 Mbit/s each. They are not part of the result."}
			},
			Label: "background streams", Plural: "numbers of background streams", Filter: "background", FilterUnit: "streams", Unsaid: "none",
			Words: func(c Cell) string {
				return wordsIf(c.BackgroundStreams > 0, fmt.Sprintf("beside %d × 10 Mbit/s", c.BackgroundStreams))
			}},
	}
}

// jobFactors are those of workloads with many ends.
func jobFactors() [5]Factor {
	const (
		mostRanks = 256     // as of the engine (traffic.MaxRanks)
		mostRows  = 500_000 // 2 TB
		mostBlock = 1024
	)
	return [...]Factor{
		{Name: "algorithm", Of: func(c *Cell) any { return &c.Algorithm }, Order: Order{Column: 33, Words: 18, Filter: 22, Levels: 21, Key: 19},
			Key: func() Key {
				return Key{Kind: "algorithm", Default: "the workload's first", Example: "[ring, recursive_doubling]",
					Doc: "How a workload with many ends does its operation. all_to_all: pairwise, linear. all_gather and all_reduce: ring, recursive_doubling. barrier: dissemination, recursive_doubling. recursive_doubling requires a power of two of ranks."}
			},
			Filter: "algorithm", Unsaid: "none"},
		{Name: "ranks", Of: func(c *Cell) any { return &c.Ranks }, Order: Order{Column: 31, Words: 19, Filter: 21, Levels: 19, Key: 17},
			Key: func() Key {
				return Key{Kind: "number of ranks", Default: "[4]", Bounds: Bounds{Min: 2, Max: mostRanks}, Example: "[2, 4, 8]",
					Doc: "The number of ends of a workload with many ends. Each rank has a pod of its own; on network host, ranks share their node. Requires testbed lab or kubernetes (docs/hpc.md)."}
			},
			Plural: "numbers of ranks", Filter: "ranks", FilterUnit: "ranks", Unsaid: "two ends",
			Words: func(c Cell) string { return wordsIf(c.Ranks > 0, strconv.Itoa(c.Ranks)+" ranks") }},
		{Name: "ranks_per_node", Of: func(c *Cell) any { return &c.RanksPerNode }, Order: Order{Column: 32, Words: 20, Filter: 21, Levels: 20, Key: 18},
			Key: func() Key {
				return Key{Kind: "number of ranks", Default: "[1]", Bounds: Bounds{Min: 1, Max: mostRanks}, Example: "[1, 2]",
					Doc: "How many ranks are on one node. Ranks fill one node after the other: ranks 0 and 1 are on node 1, ranks 2 and 3 on node 2. A path with placement intra-host has all ranks on one node."}
			},
			Label: "ranks per node", Plural: "numbers of ranks per node", Default: 1, Filter: "ranks",
			FilterWords: func(c Cell) string { return wordsIf(c.RanksPerNode > 1, strconv.Itoa(c.RanksPerNode)+" per node") },
			Words:       func(c Cell) string { return wordsIf(c.RanksPerNode > 1, strconv.Itoa(c.RanksPerNode)+" per node") }},
		{Name: "matrix_size", Of: func(c *Cell) any { return &c.MatrixSize }, Order: Order{Column: 34, Words: 21, Filter: 23, Levels: 22, Key: 20},
			Key: func() Key {
				return Key{Kind: "matrix size", Default: "[1000]", Bounds: Bounds{Min: 64, Max: mostRows}, Example: "[1000, 4000]",
					Doc: "N of mpi_hpcc: the order of the matrix that HPL solves. All ranks together need about 8 N² bytes of memory, and PTRANS half as much again. The other parts of hpcc choose their sizes by it."}
			},
			Plural: "matrix sizes", Filter: "matrix", Unsaid: "none", Words: func(c Cell) string { return wordsIf(c.MatrixSize > 0, "N "+strconv.Itoa(c.MatrixSize)) }},
		{Name: "block_size", Of: func(c *Cell) any { return &c.BlockSize }, Order: Order{Column: 36, Words: 22, Filter: 23, Levels: 24, Key: 21},
			Key: func() Key {
				return Key{Kind: "block size", Default: "[64]", Bounds: Bounds{Min: 1, Max: mostBlock}, Example: "[64, 128, 256]",
					Doc: "NB of mpi_hpcc: the size of the blocks that HPL and PTRANS divide the matrix into."}
			},
			Plural: "block sizes", Default: 64, Filter: "matrix", FilterWords: nbWords, Words: nbWords},
	}
}

// optionFactors are how it is sent.
func optionFactors() [5]Factor {
	return [...]Factor{
		{Name: "udp_gso", Of: func(c *Cell) any { return &c.UDPGSO }, Order: Order{Column: 24, Words: 12, Filter: 18, Levels: 12, Key: 10},
			Key: func() Key {
				return Key{Kind: "switch", Default: "[false]", Example: "[false, true]",
					Doc: "UDP segmentation offload. It is a factor because it changes what passes through the stack."}
			},
			Label: "UDP segmentation offload", Plural: "settings of UDP segmentation offload", Filter: "options", Unsaid: "none"},
		{Name: "zero_copy", Of: func(c *Cell) any { return &c.ZeroCopy }, Order: Order{Column: 25, Words: 13, Filter: 18, Levels: 13, Key: 11},
			Key: func() Key {
				return Key{Kind: "switch", Default: "[false]", Example: "[false, true]", Doc: "MSG_ZEROCOPY on the sending side."}
			},
			Label: "zero copy", Plural: "settings of zero copy", Filter: "options", Unsaid: "none"},
		{Name: "pin_cpus", Of: func(c *Cell) any { return &c.PinCPUs }, Order: Order{Column: 28, Words: 14, Filter: 18, Levels: 14, Key: 14},
			Key: func() Key {
				return Key{Kind: "switch", Default: "[false]", Example: "[false, true]",
					Doc: "Pin the client to the CPUs with even numbers and the server to those with odd numbers. On more than two CPUs, cpus: [apart] is the better choice."}
			},
			Label: "pinned CPUs", Plural: "settings of pinned CPUs", Filter: "options", Unsaid: "none"},
		{Name: "congestion_control", Of: func(c *Cell) any { return &c.CongestionControl }, Order: Order{Column: 29, Words: 16, Filter: 20, Levels: 15, Key: 16},
			Key: func() Key {
				return Key{Kind: "congestion control", Default: "in a lab and in a lab's Kubernetes [cubic]; elsewhere [as-is]", Example: "[cubic, bbr]",
					Pattern: algorithmName, PatternDoc: "at most 15 small letters, digits, dashes and underscores, a letter first",
					Doc: "The TCP congestion control of both ends, one of net.ipv4.tcp_available_congestion_control. as-is keeps the system's own. For TCP."}
			},
			Label: "congestion control", Default: AsIs, Absent: AsIs, Filter: "congestion control", Unsaid: AsIs,
			// Where all cells have what a lab has by default, a table need not say it.
			Words: func(c Cell) string { return wordsIf(c.CongestionControl != "cubic", c.CongestionControl) },
			Settle: func(c *Cell) {
				if c.Datagrams() {
					c.CongestionControl = ""
				}
			}},
		{Name: "cpus", Of: func(c *Cell) any { return &c.CPUs }, Order: Order{Column: 30, Words: 17, Filter: 19, Levels: 16, Key: 15},
			Key: func() Key {
				return Key{Kind: "placement on CPUs", Default: "in a lab [same], for latency_under_load and workloads with many ends [apart]; elsewhere [free]", Names: []string{CPUsSame, CPUsApart, CPUsFree}, Example: "[same, apart]",
					Doc: "On which CPUs the two ends run. same: both on one CPU. This measures only the path's cost, without waking another CPU and without a second CPU sharing the work. apart: one CPU each, on different cores of one NUMA node. free: the scheduler chooses, and its choice changes all the time. Two machines share no CPU, so same requires a lab or a path inside a node."}
			},
			Label: "placement on CPUs", Plural: "placements on CPUs", Default: CPUsFree, Absent: CPUsFree, Filter: "CPUs", Unsaid: CPUsFree,
			Words: func(c Cell) string { return wordsIf(c.CPUs == CPUsApart, "cpus apart") }},
	}
}

// nameFactors are what is compared at equal places, with equal traffic.
func nameFactors() [5]Factor {
	return [...]Factor{
		{Name: "network", Of: func(c *Cell) any { return &c.Network }, Order: Order{Column: 1, Filter: 1}, Filter: "network", OnHost: HostNetwork},
		{Name: "cluster", Of: func(c *Cell) any { return &c.Cluster }, Order: Order{Column: 2, Filter: 2, Levels: 1}, Filter: "cluster"},
		{Name: "path", Of: func(c *Cell) any { return &c.Path }, Order: Order{Column: 5, Filter: 3}, Filter: "path", OnHost: PathHostToHost},
		{Name: "client_node", Of: func(c *Cell) any { return &c.ClientNode }, Order: Order{Column: 3}},
		{Name: "server_node", Of: func(c *Cell) any { return &c.ServerNode }, Order: Order{Column: 4}},
	}
}

// nbWords are the size of HPL's blocks, where it is not the usual one.
func nbWords(c Cell) string { return wordsIf(c.BlockSize > 0, "NB "+strconv.Itoa(c.BlockSize)) }

func wordsIf(said bool, words string) string {
	if said {
		return words
	}
	return ""
}

// sizeWords are the sizes of a message and of its answer, "64/1024 B".
func sizeWords(c Cell) string {
	switch {
	case c.MessageBytes <= 0:
		return ""
	case c.ResponseBytes > 0 && c.ResponseBytes != c.MessageBytes:
		return fmt.Sprintf("%d/%d B", c.MessageBytes, c.ResponseBytes)
	}
	return fmt.Sprintf("%d B", c.MessageBytes)
}

func bitRate(c Cell) string {
	return wordsIf(c.RateBitsPerSecond > 0, fmt.Sprintf("%g Mbit/s", c.RateBitsPerSecond/1e6))
}

func rate(c Cell) string {
	return wordsIf(c.RatePerSecond > 0, fmt.Sprintf("%g/s", c.RatePerSecond))
}
