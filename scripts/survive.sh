#!/usr/bin/env bash
# Kills controllers, agents, tools, CNI plugins, lab up, lab down, resumed runs, clean, push,
# runs on a cluster and their pods, and the restore of tuned hosts at random moments, each
# followed by the next command. Checks that no sample is lost or doubled and that nothing is
# left on the machine, in the cluster or on the hosts. Prints the seed, and tries and kills
# by victim. Needs root.
#
#   survive.sh [-n KILLS] [-seed SEED] [-for SECONDS] [-beside N] [-only NUMBER]
#
# -n       how many kills (1000)
# -seed    repeat the kills of an earlier run; it prints its seed
# -for     begin no kill later than this
# -beside  how many at the same time (3)
# -only    do one of the kills, counted from 0
set -euo pipefail
cd "$(dirname "$0")/.."

export CNIBENCH_SURVIVE_KILLS=1000
pattern='^TestSurvive$'
while [ $# -gt 0 ]; do
	if [ $# -lt 2 ] || [[ ! $2 =~ ^[0-9]+$ ]]; then
		echo "survive.sh: $1: want a number" >&2
		exit 2
	fi
	case "$1" in
	-n) CNIBENCH_SURVIVE_KILLS=$2 ;;
	-seed) export CNIBENCH_SURVIVE_SEED=$2 ;;
	-for) export CNIBENCH_SURVIVE_SECONDS=$2 ;;
	-beside) export CNIBENCH_SURVIVE_BESIDE=$2 ;;
	-only) pattern="^TestSurvive\$/^$2\$" ;;
	*)
		echo "survive.sh: $1: want -n, -seed, -for, -beside or -only" >&2
		exit 2
		;;
	esac
	shift 2
done
if [ "$(id -u)" -ne 0 ]; then
	echo "survive.sh: it needs root: run it with sudo" >&2
	exit 1
fi
exec go test -count=1 -timeout 0 -v -run "$pattern" ./internal/cli
