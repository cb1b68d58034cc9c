// Package result holds the records of a campaign: one line of samples.jsonl
// per sample, appended and synced as it comes, and the directory around them.
package result

import "time"

// Schema is the version of the sample record that this program writes. Older
// versions are migrated when read, newer ones are refused.
//
// Version 2 has conditions, slices and explaining windows. A record of version 1
// was measured with the congestion control that the system had, and where the
// scheduler put both ends: what its cell says, as both are absent.
const Schema = 2

// The status of a sample.
const (
	// StatusOK: measured.
	StatusOK = "ok"
	// StatusFailed: tried and failed, for Reason; it has no metrics.
	StatusFailed = "failed"
	// StatusUnsupported: this testbed cannot build the cell, for Reason.
	StatusUnsupported = "unsupported"
)

// The ends in a sample's probes.
const (
	ClientNode = "client_node"
	ServerNode = "server_node"
	IdleSuffix = "_idle"
)

// Sample is one repetition of one cell: one line of samples.jsonl.
type Sample struct {
	Schema int `json:"schema"`
	// ID names block and cell of the plan: "b03-c017".
	ID    string `json:"id"`
	Block int    `json:"block"`
	// Attempt counts from 1; a retry is a record of its own.
	Attempt int    `json:"attempt"`
	Cell    Cell   `json:"cell"`
	Status  string `json:"status"`
	// Reason says why a sample is failed or unsupported.
	Reason  string    `json:"reason,omitempty"`
	Started time.Time `json:"started"`
	// RequestedSeconds is the length of the measured window that was asked for,
	// MeasuredSeconds what it came to on the receiving end.
	RequestedSeconds float64  `json:"requested_seconds,omitempty"`
	MeasuredSeconds  *float64 `json:"measured_seconds,omitempty"`
	// Metrics maps a name of unit.Metrics to its value in base units. A value
	// that was not measured is absent.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Histogram is the distribution of round trips.
	Histogram *Histogram `json:"histogram,omitempty"`
	// Slices are those that the metrics are the sums of; absent where the sample is
	// one long window.
	Slices *Slices `json:"slices,omitempty"`
	// Explaining is the separate window that Probes were read in; absent where that
	// is the sample's own window, or no probe was read.
	Explaining *Explaining `json:"explaining,omitempty"`
	// Conditions maps ClientNode and ServerNode to the conditions in force there, as
	// read back: congestion_control, qdisc, cpus, and the settings of TCP that matter.
	Conditions map[string]map[string]string `json:"conditions,omitempty"`
	// Series is the throughput over time, as the receiver saw it.
	Series *Series `json:"series,omitempty"`
	// PluginSeconds maps a CNI verb ("ADD", "DEL") to each plugin of the network's
	// list and how long it ran, the mean of the pods that pod_setup added.
	PluginSeconds map[string]map[string]float64 `json:"plugin_seconds,omitempty"`
	// Probes maps ClientNode and ServerNode to what was measured next to the
	// traffic there, and both with IdleSuffix to what was read in the same block
	// while nothing was measured. Nothing is subtracted here.
	Probes map[string]map[string]float64 `json:"probes,omitempty"`
	// Machines maps ClientNode and ServerNode to the machine that the probes are
	// of (its boot's id). In a lab both ends are namespaces of one kernel: then
	// both are the same, and what was counted is that of both ends together.
	Machines map[string]string `json:"machines,omitempty"`
	// Settings maps ClientNode and ServerNode to the values that were in force
	// there of every setting that a profile of the campaign asks for.
	Settings map[string]map[string]string `json:"settings,omitempty"`
	// Encryption is how packets between the nodes were encrypted, as verified; absent
	// where the cell asks for none.
	Encryption *Encryption `json:"encryption,omitempty"`
	// Job is what each rank measured, for workloads with many ends.
	Job *Job `json:"job,omitempty"`
	// Tools maps a tool to the version that it printed.
	Tools map[string]string `json:"tools,omitempty"`
	// Raw is the folder below the result directory that holds argv, stdout and
	// stderr of both ends, for external tools, and the kernel's stacks.
	Raw string `json:"raw,omitempty"`
	// Warnings are doubts about this sample alone, cause and cure in one line.
	Warnings []string `json:"warnings,omitempty"`
}

// Encryption is what encrypted a sample's packets between nodes, and how much.
type Encryption struct {
	// Algorithm is the cipher, "ChaCha20-Poly1305".
	Algorithm string `json:"algorithm"`
	// Implementation is what computes it: "WireGuard of Linux 6.1.0", "wireguard-go 0.0.20231211".
	Implementation string `json:"implementation"`
	// EncryptedBytes is what all nodes together sent encrypted during the sample: payloads
	// of UDP or of IP, with all that the encryption adds to a packet.
	EncryptedBytes uint64 `json:"encrypted_bytes"`
}

// Slices are the short parts of a sample, measured in turns with other cells.
type Slices struct {
	// LengthSeconds was asked for each, after LeadInSeconds that are not counted.
	LengthSeconds float64 `json:"length_seconds"`
	LeadInSeconds float64 `json:"lead_in_seconds"`
	// Asked is the number of slices that were planned. Those that are missing from
	// PerSecond could not begin in time, or shared their time with another cell's.
	Asked int `json:"asked"`
	// PerSecond is the primary rate of each slice, in order: bits received, or
	// transactions, per second.
	PerSecond []float64 `json:"per_second"`
}

// Explaining is a window of the same traffic apart from the measured one, for probes
// that disturb the traffic or need a long window.
type Explaining struct {
	MeasuredSeconds float64 `json:"measured_seconds"`
	// Metrics are those of the window: what the probes read is per unit of its work.
	Metrics map[string]float64 `json:"metrics"`
}

// Histogram is an HDR histogram in its own V2 compressed form.
type Histogram struct {
	// Unit is always "nanoseconds".
	Unit string `json:"unit"`
	// Count is the number of values recorded.
	Count int64 `json:"count"`
	// HDRBase64 is HdrHistogram's V2 compressed encoding in base64.
	HDRBase64 string `json:"hdr_v2_base64"`
}

// Series is a value per interval of the measured window.
type Series struct {
	IntervalSeconds         float64   `json:"interval_seconds"`
	ThroughputBitsPerSecond []float64 `json:"throughput_bits_per_second"`
}
