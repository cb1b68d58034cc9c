package probe

// What the testbed reads of the node of an end, beside what the probes of List
// read where the end runs: rules between two readings around the sample, memory
// at its end.
const (
	// NetfilterRules and NetfilterChains are how many the node's namespace has.
	NetfilterRules  = "netfilter_rules"
	NetfilterChains = "netfilter_chains"
	// NetfilterRulesPerPacket is how many rules a packet of the sample was held
	// against on the node, NetfilterChainsPerPacket how many chains it entered.
	NetfilterRulesPerPacket  = "netfilter_rules_per_packet"
	NetfilterChainsPerPacket = "netfilter_chains_per_packet"
	NetfilterReadSeconds     = "netfilter_read_seconds"
	// NetworkProcesses is how many processes the network itself has on the node,
	// NetworkResidentBytes their resident memory.
	NetworkProcesses     = "network_processes"
	NetworkResidentBytes = "network_resident_bytes"
	// ConntrackEntries is how many connections the node's namespace tracks,
	// ConntrackBytes the slab objects of those, without their extensions.
	ConntrackEntries = "conntrack_entries"
	ConntrackBytes   = "conntrack_bytes"
	// EBPFMapBytes is of the programs at the node's devices, IPSetBytes of its
	// sets of addresses, both as the kernel tells them.
	EBPFMapBytes      = "ebpf_map_bytes"
	IPSetBytes        = "ip_set_bytes"
	MemoryReadSeconds = "memory_read_seconds"
)
