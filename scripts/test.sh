#!/usr/bin/env bash
# What `make test` runs once all is installed: every test, side by side as far as they do
# not disturb each other.
#
# - Two packages run at a time. First come the tests of internal/cli, which take longest and wait for
#   labs and hosts half of their time, then others that build labs, and last those that need
#   nothing of the kernel.
# - Tests that change the machine itself, whose names end in ChangesMachine, run while no other does.
# - The tests in the virtual machine run beside all of them, at the lowest priority (nice 19).
# - The programs of a Kubernetes, which take minutes of all CPUs where they are not in the
#   cache, are built in time that all of these leave idle (SCHED_IDLE). Cilium's take as long
#   as all others: `make test-all` builds them, and `make test` uses them where they are built.
# - The tests that need these programs, whose names end in InCluster, are last, two packages at a
#   time.
# - A few tests that failed run once more, alone; the summary lists those that pass then.
set -euo pipefail
cd "$(dirname "$0")/.."

go build -o bin/testsummary ./internal/repo/testsummary

# In CI, all packages have been vetted before.
vet=()
if [ "${CNIBENCH_CI:-}" = 1 ]; then vet=(-vet=off); fi

tests=(go test -count=1 -timeout 50m "${vet[@]}" -json)
run() { "${tests[@]}" "$@" 2>&1 || true; } # testsummary gives the status

# having prints the folders of the tests that have a line with the pattern.
having() { { git grep -lE --untracked "$1" -- '*_test.go' || true; } | xargs -r -n 1 dirname | sed 's|^|./|' | sort -u; }

# built waits for the programs at full speed, and says what became of them.
built() {
	[ -n "$building" ] || return 0
	local begin=$SECONDS
	for pid in $(pgrep -g "$building"); do chrt --other --all-tasks --pid 0 "$pid" >/dev/null 2>&1 || true; done
	wait "$building" || echo "make test: not all is built; tests that need it are skipped, or fail in CI"
	building=
	cat bin/cluster-binaries.log
	echo "make test: waited $((SECONDS - begin)) s for them"
}

commands=./internal/cli
mapfile -t machine < <(having 'labtest\.(Root|Feature)\(' | grep -vxF "$commands")
mapfile -t in_vm < <(having '^func Test[A-Za-z0-9]*InVM\(')
mapfile -t in_clusters < <(having '^func Test[A-Za-z0-9]*InCluster\(')
mapfile -t pure < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./... |
	sed "/^\$/d; s|^$PWD|.|" | sort -u | comm -23 - <(printf '%s\n' "${machine[@]}" "$commands" | sort))

mapfile -t alone < <(having '^func Test[A-Za-z0-9]*ChangesMachine\(')
# processors prints the time that all processors had so far, and how much of it was idle.
processors() { awk '$1 == "cpu" { for (i = 2; i <= 9; i++) all += $i; print all, $5 + $6 }' /proc/stat; }

# stage runs a part of the tests and reports how long it took and what it left idle.
stage() {
	local name=$1 begin=$SECONDS all idle now_all now_idle
	shift
	read -r all idle < <(processors)
	"$@"
	read -r now_all now_idle < <(processors)
	echo "make test: $name: $((SECONDS - begin)) s, processors idle $((100 * (now_idle - idle) / (now_all - all + 1))) %"
}

# beside is what needs processors alone.
beside() {
	renice -n 19 -p "$BASHPID" >/dev/null
	run -p 1 -run 'InVM$' "${in_vm[@]}"
}

# side_by_side runs the tests that do not have to be alone.
side_by_side() {
	run -p 2 -skip 'InCluster$|InVM$|ChangesMachine$' "$commands" "${machine[@]}" "${pure[@]}"
}

{
	building= others=
	trap 'for job in $building $others; do kill -- "-$job" 2>/dev/null || true; done' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	set -m # these have process groups of their own, which end with this script
	if [ "$(id -u)" = 0 ] && [[ ${CNIBENCH_TURN:-clusters} = clusters ]]; then
		tools=(kubernetes flannel)
		if [ "${CNIBENCH_ALL:-}" = 1 ]; then tools+=(cilium); fi
		chrt --idle 0 scripts/cluster-binaries.sh "${tools[@]}" >bin/cluster-binaries.log 2>&1 &
		building=$!
	fi
	beside >bin/beside.json &
	in_vm_tests=$!
	others=$in_vm_tests
	set +m

	stage "tests side by side" side_by_side
	stage "tests that run alone" run -p 1 -run 'ChangesMachine$' "${alone[@]}"
	wait "$in_vm_tests"
	others=
	cat bin/beside.json
	built
	stage "tests in clusters" run -p 2 -run 'InCluster$' "${in_clusters[@]}"
} | bin/testsummary "${tests[@]}"
