#!/usr/bin/env bash
# Runs tests under Go's race detector, which needs a C compiler.
#
#   scripts/race.sh           every package, and as root also the tests that make namespaces, in
#                             packages whose tests run in their own process: 25 minutes, as
#                             root about an hour
#   scripts/race.sh quick     those that need no kernel feature and no tool, for .ci/run
#
# A program that a test builds is built without the detector.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-all}" in
quick)
	packages=(answer campaign exec flock live plan result scratch wholefile)
	packages=("${packages[@]/#/./internal/}") ;;
all) packages=(./...) ;;
*) echo "race: unknown argument $1 (known: quick)" >&2; exit 2 ;;
esac

export CGO_ENABLED=1
cc=$(go env CC)
command -v "${cc%% *}" >/dev/null || scripts/install-deps.sh race || { echo "race: no C compiler ($cc)" >&2; exit 1; }
mapfile -t packages < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "${packages[@]}" | sed '/^$/d')
# On all processors; the tests are one package after the other. The compiler takes less time
# and more memory with GOGC.
GOGC=400 go build -race "${packages[@]}"
# Some tests watch the time: where .ci/run has this script in idle time, they have a full share.
chrt --other --pid 0 "$$" 2>/dev/null || true
go test -race -short -p 1 -timeout 50m "${packages[@]}" || failed=1
if [ "${1:-all}" = all ] && [ "$(id -u)" = 0 ]; then
	# -short leaves out what needs root. Those of the command line, and of long parts, run
	# programs that are built without the detector.
	CNIBENCH_TURN=none go test -race -p 1 -timeout 50m ./internal/agent ./internal/bench ./internal/netns \
		./internal/network/... ./internal/testbed/... ./internal/traffic ./internal/workload || failed=1
fi
exit "${failed:-0}"
