#!/usr/bin/env bash
# Kills controllers, agents, tools, CNI plugins, lab up, lab down, resumed runs and clean
# at random moments, each followed by the next command, and checks that no sample is lost
# or doubled and that nothing is left on the machine. Needs root.
#
#   survive.sh [-n KILLS] [-seed SEED] [-for SECONDS] [-only NUMBER]
#
# -n     how many kills (1000)
# -seed  repeat the kills of an earlier run; it prints its seed
# -for   begin no kill later than this
# -only  do one of the kills, counted from 0
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
	-only) pattern="^TestSurvive\$/^$2\$" ;;
	*)
		echo "survive.sh: $1: want -n, -seed, -for or -only" >&2
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
