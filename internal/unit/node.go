package unit

// What a testbed reads of the node under an end, in addition to what the end's own probes
// read: rules between two readings around the sample, memory at its end.
const (
	// NetfilterRules and NetfilterChains are how many the node's namespace has.
	NetfilterRules  = "netfilter_rules"
	NetfilterChains = "netfilter_chains"
	// NetfilterRulesPerPacket is how many rules a packet of the sample was compared
	// with on the node, NetfilterChainsPerPacket how many chains it entered.
	NetfilterRulesPerPacket  = "netfilter_rules_per_packet"
	NetfilterChainsPerPacket = "netfilter_chains_per_packet"
	// NetfilterReadSeconds is how long both readings took together.
	NetfilterReadSeconds = "netfilter_read_seconds"
	// NetworkProcesses is how many processes the network itself has on the node,
	// NetworkResidentBytes their resident memory.
	NetworkProcesses     = "network_processes"
	NetworkResidentBytes = "network_resident_bytes"
	// ConntrackEntries is how many connections the node's namespace tracks,
	// ConntrackBytes the slab objects of those, without their extensions.
	ConntrackEntries = "conntrack_entries"
	ConntrackBytes   = "conntrack_bytes"
	// EBPFMapBytes is of the programs at the node's devices, IPSetBytes of its
	// sets of addresses, both as the kernel reports them.
	EBPFMapBytes = "ebpf_map_bytes"
	IPSetBytes   = "ip_set_bytes"
	// ServicesSetUpSeconds is how long it took to program the node with its services.
	ServicesSetUpSeconds = "services_set_up_seconds"
	// MemoryReadSeconds is how long the reading of all these took.
	MemoryReadSeconds = "memory_read_seconds"
)

// NodeMetrics lists them in the order in which reports show them.
func NodeMetrics() []Metric {
	return []Metric{
		{NetfilterRules, "netfilter rules", "", Neither},
		{NetfilterChains, "netfilter chains", "", Neither},
		{NetfilterRulesPerPacket, "rules per packet", "", Lower},
		{NetfilterChainsPerPacket, "chains per packet", "", Lower},
		{NetworkProcesses, "processes of the network", "", Neither},
		{NetworkResidentBytes, "their resident memory", "B", Lower},
		{ConntrackEntries, "tracked connections", "", Neither},
		{ConntrackBytes, "memory of these, at least", "B", Lower},
		{EBPFMapBytes, "eBPF maps", "B", Lower},
		{IPSetBytes, "sets of addresses", "B", Lower},
		{ServicesSetUpSeconds, "programming the services took", "s", Lower},
		{NetfilterReadSeconds, "reading the rules took", "s", Neither},
		{MemoryReadSeconds, "reading the memory took", "s", Neither},
	}
}
