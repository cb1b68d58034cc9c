package workload

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ucxName is the name of Open MPI that sends by UCX, as a test.
const ucxName = "openmpi-ucx"

// isUCX reports whether a test runs under Open MPI that sends by UCX.
func isUCX(test string) bool {
	return test == ucxName || strings.HasSuffix(test, "-"+ucxName)
}

// openMPIByUCX is Open MPI that sends by UCX in place of its own TCP, as HPC centres have it.
// UCX chooses what it sends by: an RDMA device where the place has one, else TCP on the
// measured device. Shared memory is left out, as for the other MPIs. UCX reports its choice,
// on stdout where the program prints on stderr. Open MPI 4.1 cannot count messages by UCX: its
// ranks end with a segmentation fault in pml_monitoring.
//
// Open MPI uses UCX without RDMA devices only where it is asked to (pml_ucx_tls and
// pml_ucx_devices, opal/mca/common/ucx).
func openMPIByUCX(programOnStderr bool) implementation {
	log := "stderr"
	if programOnStderr {
		log = "stdout"
	}
	mpi := openMPIWith([]string{
		"--mca", "btl", "self", "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
		"-x", "UCX_TLS=tcp,self,ib", "-x", "UCX_NET_DEVICES={device}{rdma}", "-x", "UCX_LOG_LEVEL=info", "-x", "UCX_LOG_FILE=" + log,
	}, nil)
	mpi.carries = ucxCarriers
	return mpi
}

// carriers are what messages to other places are sent by, as UCX names it: a transport and a
// device, "tcp/eth0", "rc_mlx5/mlx5_0:1".
type carriers []string

var (
	// ucxChoice matches the line in which UCX reports how it is connected with a peer
	// (ucp_worker.c): "UCX  INFO    ep_cfg[1]: tag(tcp/eth0)" in 1.13, and in newer versions
	// "UCX  INFO  0x55 inter-node cfg#1 tag(tcp/eth0)".
	ucxChoice = regexp.MustCompile(`UCX +INFO +(?:ep_cfg\[\d+\]:|.*\bcfg#\d+) (.*)`)
	// ucxCarrier matches one transport and its device.
	ucxCarrier = regexp.MustCompile(`\b([a-z][a-z0-9_]*)/([A-Za-z0-9_.:-]+)`)
)

// ucxCarriers reads what UCX reported, but for its way from a rank to itself.
func ucxCarriers(launcher Output) (carriers, error) {
	var by carriers
	for _, line := range ucxChoice.FindAllStringSubmatch(launcher.Stdout+"\n"+launcher.Stderr, -1) {
		for _, c := range ucxCarrier.FindAllStringSubmatch(line[1], -1) {
			if c[1] != "self" && !slices.Contains(by, c[0]) {
				by = append(by, c[0])
			}
		}
	}
	if len(by) == 0 {
		return nil, errors.New("UCX did not report what it sends by (UCX_LOG_LEVEL=info)")
	}
	slices.Sort(by)
	return by, nil
}

// carriedBy records what carried the messages. TCP on another device than the measured one,
// and shared memory, are an error. past reports that an RDMA device carried them, so that the
// measured device did not.
func (m *Measurement) carriedBy(by carriers, launcher Output) (past bool, err error) {
	device := ""
	if launcher.Device != nil {
		device = launcher.Device.Name
	}
	for _, c := range by {
		transport, on, _ := strings.Cut(c, "/")
		switch {
		case transport == "tcp" && on == device:
		case slices.ContainsFunc([]string{"rc", "ud", "dc"}, func(ib string) bool { return transport == ib || strings.HasPrefix(transport, ib+"_") }):
			past = true
		default:
			return false, fmt.Errorf("UCX sent by %s, and the measured device is %s: the job used another transport", c, device)
		}
	}
	m.Tools["UCX transport"] = strings.Join(by, ", ")
	if past {
		m.Warnings = append(m.Warnings, "UCX sent by "+strings.Join(by, ", ")+": an RDMA device carried the messages, past the pod network")
	}
	return past, nil
}
