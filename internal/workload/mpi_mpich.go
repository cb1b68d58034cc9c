package workload

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	// mpichName is the name of MPICH as a test.
	mpichName = "mpich"
	// mpichLaunch is what Hydra's launch commands begin with.
	mpichLaunch = "HYDRA_LAUNCH: "
)

// isMPICH reports whether a test runs under MPICH.
func isMPICH(test string) bool {
	return test == mpichName || strings.HasSuffix(test, "-"+mpichName)
}

// mpiNames are the MPIs of tests, the default first.
func mpiNames() []string { return []string{openMPIName, mpichName, ucxName} }

// mpiOf is the name of the MPI that a test runs under.
func mpiOf(test string) string {
	if isMPICH(test) {
		return mpichName
	}
	return openMPIName
}

// mpich is MPICH 4, whose Hydra prints one launch command for each place, its own too, with
// the launcher "manual". Debian's build sends by UCX, which is pinned to TCP here, and has
// no shared memory (MPIR_CVAR_NOLOCAL). It does not count what it sends.
func mpich() implementation {
	return implementation{
		prefix: mpichLaunch,
		local:  true,
		launch: func(hosts []MPIHost) Program {
			ranks := 0
			var slots []string
			for _, h := range hosts {
				ranks += len(h.Ranks)
				slots = append(slots, fmt.Sprintf("%s:%d", h.Address, len(h.Ranks)))
			}
			// Without -genvnone each rank has the environment of the first, with a folder for
			// temporary files that another pod does not have.
			return Program{Argv: []string{
				"mpiexec.mpich", "-genvnone", "-launcher", "manual", "-iface", "{device}", "-hosts", strings.Join(slots, ","),
				"-genv", "UCX_TLS", "tcp,self", "-genv", "UCX_NET_DEVICES", "{device}", "-genv", "MPIR_CVAR_NOLOCAL", "1",
				"-wdir", "/", "-np", strconv.Itoa(ranks),
			}}
		},
		daemon: func(hosts []MPIHost, words []string) (int, []string, error) {
			argv, err := programFrom(words, "hydra_pmi_proxy")
			if err != nil {
				return 0, nil, err
			}
			at := slices.Index(argv, "--proxy-id")
			if at < 0 || at+1 == len(argv) {
				return 0, nil, errors.New("it has no --proxy-id")
			}
			host, err := strconv.Atoi(argv[at+1])
			if err != nil || host < 0 || host >= len(hosts) {
				return 0, nil, fmt.Errorf("%q is none of %d places", clip(argv[at+1]), len(hosts))
			}
			return host, argv, nil
		},
	}
}

// mpichTools are the programs of MPICH. UCX loads modules at run time.
func mpichTools() []Tool {
	return []Tool{
		{Name: "mpiexec.mpich", Package: "mpich", Version: []string{"mpichversion"}, MPI: mpichName, Calls: []string{"mpichversion"}, Reads: []string{"/usr/lib/*/ucx"}},
		{Name: "hydra_pmi_proxy", Package: "mpich", Version: []string{"mpichversion"}, MPI: mpichName},
	}
}
