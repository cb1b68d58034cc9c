#!/usr/bin/env bash
# Builds the programs of `cnibench lab up --kubernetes` out of the pinned modules in
# tools/, each of which has a build.sh that takes the folder to build into.
#
#   scripts/cluster-binaries.sh [TOOL...]     (all folders of tools/ with a build.sh when none is named)
#
# What is built is kept in the user's cache, or in CNIBENCH_BIN_DIR, under a key of
# the tool's own files, the Go version and the architecture: nothing is built twice,
# and all worktrees share it. <cache>/bin holds a link to each program that was built
# or found last; that is where cnibench looks.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cache=${CNIBENCH_BIN_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cnibench/cluster-binaries}
mkdir -p "$cache/bin"
cache=$(cd "$cache" && pwd)

say() { echo "cluster-binaries: $*"; }
fail() { echo "cluster-binaries: $*" >&2; exit 1; }

command -v go >/dev/null || fail "no Go here; see https://go.dev/doc/install"

# Compilers that collect less garbage take more memory and less time.
export CGO_ENABLED=0 GOWORK=off GOFLAGS="-mod=readonly -trimpath -buildvcs=false" GOGC=400

# key_of prints what a tool's programs depend on, shortened.
key_of() {
	(
		cd "$root/tools/$1"
		{ go version; go env GOARCH; find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; } |
			sha256sum | cut -c1-12
	)
}

# build makes the folder $2 of the tool $1, unless it exists. Only one process at
# a time builds a tool; who waited finds it done.
build() {
	local tool=$1 to=$2 making start took
	exec 9>"$cache/.$tool.lock"
	flock -n 9 || { say "$tool: waiting for who builds it now"; flock 9; }
	if [ ! -d "$to" ]; then
		say "$tool: building; this is done once and takes minutes"
		start=$SECONDS
		making=$cache/.$tool.making
		rm -rf "$making"
		mkdir -p "$making/to"
		# From a copy: who edits or switches branches meanwhile changes nothing.
		cp -r "$root/tools/$tool" "$making/from"
		(cd "$making/from" && bash build.sh "$making/to" 9>&-) ||
			fail "$tool: its build failed, see above; when a module cannot be fetched: go env GOPROXY, or give ready programs with --bin-dir"
		took=$((SECONDS - start))
		mv -T "$making/to" "$to"
		rm -rf "$making"
		say "$tool: built in $took s"
	fi
	exec 9>&-
}

if [ $# = 0 ]; then
	for script in "$root"/tools/*/build.sh; do set -- "$@" "$(basename "$(dirname "$script")")"; done
fi
for tool in "$@"; do
	[ -f "$root/tools/$tool/build.sh" ] || fail "no tool $tool: there is no tools/$tool/build.sh"
	to=$cache/$tool-$(key_of "$tool")
	if [ -d "$to" ]; then say "$tool: there already"; else build "$tool" "$to"; fi
	for program in "$to"/*; do
		name=$(basename "$program")
		ln -sfn "$program" "$cache/bin/.$name.$$"
		mv -T "$cache/bin/.$name.$$" "$cache/bin/$name"
	done
done
say "in $cache/bin"
