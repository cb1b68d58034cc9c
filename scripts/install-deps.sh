#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that `make run` needs, or with the
# argument "test" those that the tests need, with "race" those of the race detector. Run
# again, it changes nothing.
#
#   scripts/install-deps.sh [run|test|race]
#
# Not as root, it says which are missing. None of these packages has a service;
# those that do are in install-tools.sh, which keeps them from starting.
set -euo pipefail

# CNI's reference plugins, and what they and people call to look at a network.
run=(containernetworking-plugins iproute2 iptables nftables ethtool procps)
# Only for tests: a browser for the report, Mininet to compare the lab with, an
# emulator for another kernel (whose package the tests fetch and unpack), jq for the
# examples of docs/data.md (pandas and DuckDB for these come from PyPI, venv.sh), what
# build-hpcc.sh compiles with, and debootstrap for the root that dist-test.sh installs into.
test=(chromium mininet bridge-utils qemu-system-x86 busybox-static kmod xz-utils jq python3-venv gcc libc6-dev make debootstrap)
# A C compiler, which the race detector is linked by.
race=(gcc libc6-dev)

say() { echo "install-deps: $*"; }
# No pipes here: grep -q would end the program before it, which then fails.
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
known() { [[ $(apt-cache policy "$1") == *"Candidate: "[^\(]* ]]; }

# quietly shows a command's output only where it fails.
quietly() {
	local out
	out=$("$@" 2>&1) || { echo "$out" >&2; return 1; }
}

case "${1:-run}" in
run) packages=("${run[@]}") ;;
test) packages=("${run[@]}" "${test[@]}") ;;
race) packages=("${race[@]}") ;;
*) say "unknown argument $1 (known: run, test, race)" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	say "neither Debian nor Ubuntu: install these packages, or similar ones, by hand: ${packages[*]}"
	exit 0
fi

status=0
if [ "${1:-run}" = test ]; then
	for kind in tools hosts kubernetes; do
		sh "$(dirname "$0")/install-tools.sh" "$kind" || status=1
	done
fi

# look sets missing to the packages that are not installed.
look() {
	missing=()
	for p in "${packages[@]}"; do installed "$p" || missing+=("$p"); done
}

# finish makes what no package has, and ends: what comes from PyPI, and hpcc.mpich.
finish() {
	if [ "$1" = test ]; then
		if [ "$(id -u)" = 0 ]; then sh "$(dirname "$0")/build-hpcc.sh" || status=1; fi
		"$(dirname "$0")/venv.sh" "$(dirname "$0")/../tools/data/requirements.txt" >/dev/null || status=1
	fi
	exit "$status"
}

look
if [ ${#missing[@]} = 0 ]; then finish "${1:-run}"; fi
if [ "$(id -u)" != 0 ]; then
	say "missing: ${missing[*]}"
	say "install them with: sudo apt-get install --no-install-recommends ${missing[*]}"
	exit 1
fi

for try in 1 2; do
	if [ "$try" = 2 ]; then say "once more"; fi
	fine=yes
	say "apt-get update"
	quietly apt-get update -q -o APT::Update::Error-Mode=any || fine=no
	wanted=()
	for p in "${missing[@]}"; do
		if known "$p"; then wanted+=("$p"); else say "apt knows no package $p here"; fi
	done
	if [ ${#wanted[@]} -gt 0 ]; then
		say "apt-get install ${wanted[*]}"
		DEBIAN_FRONTEND=noninteractive quietly apt-get install -y -q --no-install-recommends "${wanted[@]}" || fine=no
	fi
	look
	if [ ${#missing[@]} = 0 ] || [ "$fine" = yes ]; then break; fi
done

if [ ${#missing[@]} = 0 ]; then finish "${1:-run}"; fi
say "still missing: ${missing[*]}"
exit 1
