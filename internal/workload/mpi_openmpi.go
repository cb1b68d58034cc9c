package workload

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// openMPIName is the name of Open MPI as a test.
const openMPIName = "openmpi"

// openMPILaunch is what the lines of the launch script below begin with.
const openMPILaunch = "cnibench-launch: "

// openMPI is Open MPI 4, whose mpirun calls a remote shell for each other place. That is a
// script here, which prints the command and ends; mpirun waits for its daemon (orted).
//
// mpirun has orted leave its session otherwise (orte_leave_session_attached), and orted
// would start those of other places (plm_rsh_no_tree_spawn). Messages go by TCP alone:
// btl has no shared memory. Ranks that wait yield their CPU, as ranks may share one. A
// daemon whose machine is cut off is lost after 4 s (oob_tcp_keepalive; 8 minutes otherwise).
func openMPI() implementation {
	return openMPIWith([]string{
		"--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "{device}", "--mca", "pml", "ob1,monitoring",
		"--mca", "pml_monitoring_enable", "1", "--mca", "pml_monitoring_enable_output", "2",
	}, openMPISent)
}

// openMPIWith is Open MPI with arguments that choose its transport, and how to read what it
// counted; nil where it does not count.
func openMPIWith(transport []string, sent func(Output) (mpiBytes, error)) implementation {
	return implementation{
		prefix: openMPILaunch,
		launch: func(hosts []MPIHost) Program {
			ranks := 0
			var slots []string
			for _, h := range hosts {
				ranks += len(h.Ranks)
				slots = append(slots, fmt.Sprintf("%s:%d", h.Address, len(h.Ranks)))
			}
			argv := []string{"mpirun.openmpi"}
			for _, param := range [][2]string{
				{"plm", "rsh"}, {"plm_rsh_agent", "sh {dir}/launch"}, {"plm_rsh_no_tree_spawn", "1"},
				{"orte_leave_session_attached", "1"}, {"orte_keep_fqdn_hostnames", "1"},
				{"oob_tcp_if_include", "{device}"}, {"mpi_yield_when_idle", "1"},
				{"oob_tcp_keepalive_time", "1"}, {"oob_tcp_keepalive_intvl", "1"}, {"oob_tcp_keepalive_probes", "3"},
			} {
				argv = append(argv, "--mca", param[0], param[1])
			}
			argv = append(argv, transport...)
			argv = append(argv, "--bind-to", "none", "-wdir", "/", "--host", strings.Join(slots, ","), "-np", strconv.Itoa(ranks))
			return Program{Argv: argv, Files: map[string]string{"launch": "printf '%s\\n' \"" + openMPILaunch + "$*\"\n"}}
		},
		daemon: func(hosts []MPIHost, words []string) (int, []string, error) {
			if len(words) == 0 {
				return 0, nil, errors.New("it is empty")
			}
			host := slices.IndexFunc(hosts, func(h MPIHost) bool { return h.Address.String() == words[0] })
			if host < 1 {
				return 0, nil, fmt.Errorf("%q is none of the other places", clip(words[0]))
			}
			argv, err := programFrom(words[1:], "orted")
			return host, argv, err
		},
		sent: sent,
	}
}

// openMPITools are the programs of Open MPI, which loads its components at run time.
func openMPITools() []Tool {
	return []Tool{
		{Name: "mpirun.openmpi", Package: "openmpi-bin", Version: []string{"mpirun.openmpi", "--version"}, MPI: openMPIName, Calls: []string{"sh"},
			Reads: []string{"/usr/lib/*/openmpi/lib/openmpi3", "/usr/lib/*/pmix2/lib/pmix", "/usr/share/openmpi/*.txt", "/usr/share/openmpi/amca-param-sets", "/etc/openmpi"}},
		{Name: "orted", Package: "openmpi-bin", Version: []string{"ompi_info", "--version"}, MPI: openMPIName, Calls: []string{"ompi_info"}},
	}
}

// openMPICount matches a line of what pml_monitoring prints as MPI ends: what one rank sent
// to one other. Lines of ranks may run into each other.
var openMPICount = regexp.MustCompile(`[EI]\t(\d{1,9})\t(\d{1,9})\t(\d{1,18}) bytes\t\d+ msgs sent`)

// openMPISent reads what Open MPI counted on stderr.
func openMPISent(launcher Output) (mpiBytes, error) {
	sent := mpiBytes{}
	for _, found := range openMPICount.FindAllStringSubmatch(launcher.Stderr, -1) {
		var n [3]int
		for i := range n {
			var err error
			if n[i], err = strconv.Atoi(found[1+i]); err != nil {
				return nil, err
			}
		}
		if n[0] != n[1] {
			sent[[2]int{n[0], n[1]}] += float64(n[2])
		}
	}
	if len(sent) == 0 {
		return nil, errors.New("mpirun.openmpi did not print what its ranks sent (pml_monitoring): install the Open MPI of the distribution, apt-get install openmpi-bin")
	}
	return sent, nil
}
