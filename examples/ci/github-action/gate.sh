#!/bin/sh
# Compares a new result of cnibench with a base, and ends with the exit status of
# cnibench compare: 0 the gate passes, 3 a cell got worse or broke, 5 some cells cannot
# be decided, 2 the results cannot be compared.
#
#   gate.sh BASE NEW
#
# CNIBENCH            the program (default: cnibench)
# CNIBENCH_BASELINE   what BASE is: result, or latest-of (a folder of results; the default)
# CNIBENCH_THRESHOLD  the relative difference that matters (default: 3%)
# CNIBENCH_FAIL_ON    what fails the gate: a list of worse, broken, undecided (default: all)
# CNIBENCH_REPORTS    the folder for compare.md, compare.html and junit.xml (default: cnibench-gate)
#
# In a GitHub workflow the comparison is added to the job's summary, and the outputs
# verdict and status are set.
set -eu

if [ $# != 2 ]; then
	echo "usage: gate.sh BASE NEW" >&2
	exit 2
fi
base=$1 new=$2
program=${CNIBENCH:-cnibench}
reports=${CNIBENCH_REPORTS:-cnibench-gate}

compare() {
	"$program" compare --baseline "${CNIBENCH_BASELINE:-latest-of}" --threshold "${CNIBENCH_THRESHOLD:-3%}" \
		--fail-on "${CNIBENCH_FAIL_ON:-worse,broken,undecided}" "$@" -- "$base" "$new"
}

status=0
compare || status=$?
case $status in
0) verdict=passed ;;
3) verdict=worse ;;
5) verdict=undecided ;;
*) verdict=refused ;;
esac

# The comparison in other formats ends with the same status each time.
if [ $verdict != refused ]; then
	mkdir -p "$reports"
	compare -q -o markdown --to "$reports/compare.md" || [ $? = $status ]
	compare -q -o html --to "$reports/compare.html" || [ $? = $status ]
	compare -q -o junit --to "$reports/junit.xml" || [ $? = $status ]
	if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat "$reports/compare.md" >>"$GITHUB_STEP_SUMMARY"; fi
fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
	printf 'verdict=%s\nstatus=%s\n' "$verdict" "$status" >>"$GITHUB_OUTPUT"
fi
echo "gate: $verdict (exit status $status)"
exit $status
