#!/usr/bin/env bash
# Runs the fuzz targets of the tree. It finds them on its own: every `func FuzzXxx` of a
# *_test.go.
#
#   fuzz.sh list      print them: package and name
#   fuzz.sh all       run each for FUZZTIME (10m unless set), FUZZ_BESIDE (1 unless set)
#                     of them at the same time
#   fuzz.sh one PACKAGE NAME  run one of them for FUZZTIME
#   fuzz.sh rotation  run two of them for FUZZTIME (1m unless set), within
#                     FUZZ_SECONDS (300 unless set) with their builds. Each day begins
#                     with the next ones, so that all get their turn.
#
# FUZZ_DAY sets the day that the rotation uses (days since 1970; .ci/run sets the number of
# commits). Every line of the report is: result, executions, seconds, target. Go makes the inputs with one worker, and
# keeps what it learned in its cache for the next run. An input fails its target where the
# target's own checks fail, and where it takes more than internal/labtest/fuzzed allows.
# The exit status is 1 where a target failed; go then leaves the input that failed in the
# package's testdata/fuzz. Go before 1.27 may fail a target just as its time is over, without
# an input (golang/go#75804): the report has "ok", as the target failed at nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

targets() {
	{ git grep --untracked -E '^func Fuzz[A-Za-z0-9_]*\(' -- '*_test.go' || true; } |
		sed -nE 's|^(.*)/[^/]*_test\.go:func (Fuzz[A-Za-z0-9_]*)\(.*|./\1 \2|p' | sort
}

# only_its_time_was_over LOG: the one thing that failed is that go stopped the target in time.
only_its_time_was_over() {
	grep -A1 -E '^ *--- FAIL: ' "$1" | tr -s ' \n' ' ' | grep -qE '^ ?--- FAIL: Fuzz[A-Za-z0-9_]* \([0-9.]+s\) context deadline exceeded $' &&
		! grep -qE '^panic: |Failing input written to ' "$1"
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
	elif [ "$status" -ne 0 ] && ! only_its_time_was_over "$log"; then
		said=FAILED
		failed+=("$1 $2")
	fi
	[ "$said" = FAILED ] || : >"$log"
	# What go printed of a failure and the line of the report, in one piece.
	printf '%s\t%s executions\t%d s\t%s %s\n' "$said" "${executions:-unknown}" $((SECONDS - begin)) "$1" "$2" >>"$log"
	cat "$log"
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
	printf '%s\n' "${all[@]}" | xargs -P "${FUZZ_BESIDE:-1}" -L 1 scripts/fuzz.sh one || exit 1
	;;
one)
	fuzz "$2" "$3" "${FUZZTIME:-10m}" 0
	;;
rotation)
	limit=${FUZZ_SECONDS:-300} each=2
	day=${FUZZ_DAY:-$(($(date +%s) / 86400))}
	first=$((day * each % ${#all[@]}))
	for ((i = 0; i < each && i < ${#all[@]}; i++)); do
		left=$((limit - SECONDS))
		t=${all[(first + i) % ${#all[@]}]}
		if [ "$left" -lt 5 ]; then
			printf 'out of time\t0 executions\t0 s\t%s\n' "$t"
			continue
		fi
		fuzz ${t% *} ${t#* } "${FUZZTIME:-1m}" "$left"
	done
	;;
*)
	echo "fuzz.sh: $1: want list, all, one or rotation" >&2
	exit 2
	;;
esac

if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
