package workload

import "fmt"

// mpiBytes is how much MPI sent, by the ranks from and to.
type mpiBytes map[[2]int]float64

// account records what MPI sent to other places and what their devices sent. Less on a
// device than MPI sent by it is an error: the job used another transport.
func (m *Measurement) account(sent mpiBytes, hosts []MPIHost, outputs []Output) error {
	at := map[int]int{} // places of ranks
	for i, h := range hosts {
		for _, rank := range h.Ranks {
			at[rank] = i
		}
	}
	byHost := make([]float64, len(hosts))
	for ranks, bytes := range sent {
		from, known := at[ranks[0]]
		to, knownTo := at[ranks[1]]
		if !known || !knownTo {
			return fmt.Errorf("MPI counted messages from rank %d to rank %d, and there are %d ranks", ranks[0], ranks[1], len(at))
		}
		if from != to {
			byHost[from] += bytes
		}
	}
	for i, h := range hosts {
		if len(hosts) > 1 && byHost[i] == 0 && outputs[i].Device != nil {
			return fmt.Errorf("MPI counted no message from %s to another place", h.Address)
		}
		m.Metrics["mpi_sent_bytes"] += byHost[i]
	}
	return m.devices(byHost, "MPI sent", hosts, outputs)
}

// accountLeast is account for a job whose MPI does not count: what the operations send from
// each place at least stands for it, and is not recorded.
func (m *Measurement) accountLeast(least []float64, hosts []MPIHost, outputs []Output) error {
	return m.devices(least, "MPI must have sent at least", hosts, outputs)
}

// devices records what the devices sent. Less than must have left a place is an error.
func (m *Measurement) devices(must []float64, words string, hosts []MPIHost, outputs []Output) error {
	for i, h := range hosts {
		d := outputs[i].Device
		switch {
		case d == nil:
			return fmt.Errorf("the bytes of the device with %s were not counted", h.Address)
		case d.Name != outputs[0].Device.Name:
			return fmt.Errorf("the measured device is %s at %s and %s at %s: MPI takes one name for all", outputs[0].Device.Name, hosts[0].Address, d.Name, h.Address)
		case d.SentBytes < must[i]:
			return fmt.Errorf("%s %.0f bytes from %s to other places, and device %s only %.0f: the job used another transport", words, must[i], h.Address, d.Name, d.SentBytes)
		}
		m.Metrics["device_sent_bytes"] += d.SentBytes
	}
	if len(hosts) == 1 {
		m.Warnings = append(m.Warnings, "all ranks share one network namespace, so no device carried their messages: compare jobs on pods or on several nodes")
	}
	return nil
}
