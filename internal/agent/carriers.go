package agent

import (
	"fmt"
	"strconv"
	"strings"
)

// CarriersEnv is the environment variable that gives an agent the processes that
// carry its place's packets in user space, divided by commas: their CPU time is
// the sample's (probe.Roots).
const CarriersEnv = "CNIBENCH_CARRIERS"

// Carriers is the variable with its value.
func Carriers(pids []int) string {
	var all []string
	for _, pid := range pids {
		all = append(all, strconv.Itoa(pid))
	}
	return CarriersEnv + "=" + strings.Join(all, ",")
}

func readCarriers(value string) ([]int, error) {
	var pids []int
	for field := range strings.SplitSeq(value, ",") {
		if field == "" {
			continue
		}
		pid, err := strconv.Atoi(field)
		if err != nil || pid < 1 {
			return nil, fmt.Errorf("%s=%s: %q is no process", CarriersEnv, value, field)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
