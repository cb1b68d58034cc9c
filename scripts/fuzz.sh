#!/usr/bin/env bash
# Runs the fuzz targets of the tree, one after the other. It finds them on its own:
# every `func FuzzXxx` of a *_test.go.
#
#   fuzz.sh list      print them: package and name
#   fuzz.sh all       run each for FUZZTIME (10m unless set)
#   fuzz.sh rotation  run some of them for FUZZTIME (10s unless set), within
#                     FUZZ_SECONDS (120 unless set) with their builds. Each day begins
#                     with the next ones, so that all get their turn.
#
# FUZZ_DAY sets the day that the rotation uses (days since 1970). Every line of the
# report is: result, executions, seconds, target. The exit status is 1 where a target
# failed; go then leaves the input that failed in the package's testdata/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."

targets() {
	{ git grep --untracked -E '^func Fuzz[A-Za-z0-9_]*\(' -- '*_test.go' || true; } |
		sed -nE 's|^(.*)/[^/]*_test\.go:func (Fuzz[A-Za-z0-9_]*)\(.*|./\1 \2|p' | sort
}

# fuzz PACKAGE NAME FUZZTIME SECONDS: SECONDS bounds build and run; 0 is no bound.
fuzz() {
	local begin=$SECONDS status=0 log executions
	log=$(mktemp)
	timeout --signal=INT --kill-after=10 "$4" \
		go test -run='^$' -fuzz="^$2\$" -fuzztime="$3" -fuzzminimizetime=1s -parallel=1 "$1" >"$log" 2>&1 || status=$?
	executions=$(sed -nE 's/.*execs: ([0-9]+).*/\1/p' "$log" | tail -n 1)
	local said=ok
	if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
		said="out of time"
	elif [ "$status" -ne 0 ]; then
		said=FAILED
		failed+=("$1 $2")
		cat "$log"
	fi
	printf '%s\t%s executions\t%d s\t%s %s\n' "$said" "${executions:-0}" $((SECONDS - begin)) "$1" "$2"
	rm -f "$log"
}

mapfile -t all < <(targets)
if [ ${#all[@]} -eq 0 ]; then
	echo "fuzz.sh: no fuzz target found" >&2
	exit 1
fi
failed=()

case "${1:-all}" in
list)
	printf '%s\n' "${all[@]}"
	;;
all)
	for t in "${all[@]}"; do
		fuzz ${t% *} ${t#* } "${FUZZTIME:-10m}" 0
	done
	;;
rotation)
	limit=${FUZZ_SECONDS:-120} each=4
	day=${FUZZ_DAY:-$(($(date +%s) / 86400))}
	first=$((day * each % ${#all[@]}))
	for ((i = 0; i < each && i < ${#all[@]}; i++)); do
		left=$((limit - SECONDS))
		t=${all[(first + i) % ${#all[@]}]}
		if [ "$left" -lt 5 ]; then
			printf 'out of time\t0 executions\t0 s\t%s\n' "$t"
			continue
		fi
		fuzz ${t% *} ${t#* } "${FUZZTIME:-10s}" "$left"
	done
	;;
*)
	echo "fuzz.sh: $1: want list, all or rotation" >&2
	exit 2
	;;
esac

if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
