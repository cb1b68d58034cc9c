#!/usr/bin/env bash
# What `make test` runs once all is installed: every test, in two parts. The programs
# of a Kubernetes take a quarter of an hour of two CPUs to build where they are not in
# the cache; they are built in time that the first part leaves idle (SCHED_IDLE), and
# the tests that need them, whose names end in InCluster, are the second.
set -euo pipefail
cd "$(dirname "$0")/.."

go build -o bin/testsummary ./internal/repo/testsummary

run() { go test -count=1 -p 1 -timeout 50m -json "$@" 2>&1 || true; } # testsummary gives the status

# built waits for the programs at full speed, and says what became of them.
built() {
	[ -n "$building" ] || return 0
	local begin=$SECONDS
	# All that the build has started goes on as ordinary programs do.
	local family=$building children=$building
	while children=$(pgrep -d , -P "$children"); do family+=,$children; done
	for pid in ${family//,/ }; do chrt --other --all-tasks --pid 0 "$pid" >/dev/null 2>&1 || true; done
	wait "$building" || echo "make test: not all is built; tests that need it are skipped, or fail in CI"
	building=
	cat bin/cluster-binaries.log
	echo "make test: waited $((SECONDS - begin)) s for them"
}

in_clusters=$({ git grep -l '^func Test[A-Za-z0-9]*InCluster(' -- '*_test.go' || true; } | xargs -r -n 1 dirname | sort -u | sed 's|^|./|')
{
	building=
	if [ "$(id -u)" = 0 ]; then
		chrt --idle 0 scripts/cluster-binaries.sh >bin/cluster-binaries.log 2>&1 &
		building=$!
		trap 'kill "$building" 2>/dev/null || true' EXIT
	fi

	run -skip 'InCluster$' ./...
	built
	# shellcheck disable=SC2086 # folders, one word each
	[ -z "$in_clusters" ] || run -run 'InCluster$' $in_clusters
} | bin/testsummary
