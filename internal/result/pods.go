package result

import "time"

// PodSetupName is the name of the workload that adds pods in place of sending traffic.
const PodSetupName = "pod_setup"

// PodTimes is how long after the beginning of all ADDs a pod came to something;
// nil where that was not seen.
type PodTimes struct {
	// Device is when its device was in the pod, Address when that had its
	// address, Route when the last route was set before the plugins were through.
	Device, Address, Route *time.Duration
	// Allocated is when its address was reserved by host-local, the IPAM plugin that
	// most networks use: it writes a file for each.
	Allocated *time.Duration
	// Added is when its ADD returned, Policy when the network's agent was through
	// with what it does once it knows the pods; nil where it does nothing.
	Added, Policy *time.Duration
	// Started is when its first process began, which on a cluster is the end of its runtime's part.
	Started *time.Duration
	// Answered is when a pod of another place had its first answer of it.
	Answered *time.Duration
	// Removed is how long its DEL took, from the beginning of all DELs.
	Removed *time.Duration
	// Plugins is how long each plugin of the network's list ran.
	Plugins []PluginTime
}

// PluginTime is how long a CNI plugin ran for a verb, "ADD" or "DEL". What it
// delegates to is within.
type PluginTime struct {
	Plugin, Verb string
	Took         time.Duration
}

// PodSetUp is what was seen of pods that were added at once.
type PodSetUp struct {
	Pods []PodTimes
	// KernelBytes is how much more of its own memory the kernel had once all of them
	// answered, ProcessBytes that of the network's processes on their node; nil where
	// the change was no larger than the usual fluctuation.
	KernelBytes, ProcessBytes *float64
	Doubts                    []string
}
