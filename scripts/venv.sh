#!/usr/bin/env bash
# Prints a virtual environment of Python with what a list of requirements names, in the
# user's cache. Where there is none yet it makes one, with pip: versions and hashes are pinned
# in the list. It needs Python 3.10 or later with venv, and a package index that pip can
# reach; it ends with 1 where one of these is missing, and says which.
#
#   scripts/venv.sh tools/site/requirements.txt
set -euo pipefail
requirements=$1
venv=${XDG_CACHE_HOME:-$HOME/.cache}/cnibench/$(basename "$(dirname "$requirements")")-$(sha256sum "$requirements" | cut -c1-12)
fail() { echo "$*" >&2; exit 1; }
mkdir -p "$(dirname "$venv")"
if command -v flock >/dev/null; then # two at the same time would remove each other's
	exec 9>"$venv.lock"
	flock 9
fi
if [ ! -e "$venv/whole" ]; then
	command -v python3 >/dev/null || fail "python3 is missing: apt-get install python3-venv"
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	# An interrupted installation has no file "whole", and begins again.
	rm -rf "$venv"
	python3 -m venv "$venv" >"$log" 2>&1 || fail "python3 has no venv: apt-get install python3-venv"
	timeout 300 "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r "$requirements" >"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		rm -rf "$venv"
		fail "pip cannot install $requirements"
	}
	: >"$venv/whole"
fi
echo "$venv"
