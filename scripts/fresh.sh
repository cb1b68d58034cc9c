#!/usr/bin/env bash
# Tests what somebody does who has just cloned the repository, on a machine that has never
# built anything: in a clean Debian root, with empty caches of Go and npm and without
# apt's lists, from a clone of this tree's last commit.
#
#   scripts/fresh.sh           make quick, and make run for 20 seconds
#   scripts/fresh.sh -full     then make test, make cluster-binaries, and a lab's
#                              Kubernetes with Cilium as well; more than an hour
#
# It runs as root and needs debootstrap (package debootstrap). The root has this machine's
# Go, its entries of apt, and make and git; all else is installed by what is tested. The
# root is in FRESH_DIR (a new folder in /var/tmp), which is removed at the end; FRESH_KEEP=1
# keeps it. Mounts are in a namespace of their own and end with the script.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "fresh: $*"; }
fail() { echo "fresh: $*" >&2; exit 1; }

full=
case "${1:-}" in
"") ;;
-full) full=yes ;;
*) echo "fresh: unknown argument $1 (known: -full)" >&2; exit 2 ;;
esac
[ "$(id -u)" = 0 ] || fail "a Debian root can be made by root alone: run sudo make fresh"
command -v debootstrap >/dev/null || fail "no debootstrap: apt-get install debootstrap"
command -v go >/dev/null || fail "no Go here; see https://go.dev/doc/install"

if [ -z "${FRESH_INSIDE:-}" ]; then
	dir=${FRESH_DIR:-$(mktemp -d /var/tmp/cnb-fresh-XXXXXX)}
	mkdir -p "$dir"
	# Whatever ends this script ends the namespace with its mounts; then only files are left.
	trap '[ -n "${FRESH_KEEP:-}" ] || rm -rf --one-file-system "$dir"' EXIT
	FRESH_INSIDE=$dir unshare --mount --propagation private "$PWD/scripts/fresh.sh" "$@"
	exit
fi
dir=$FRESH_INSIDE root=$FRESH_INSIDE/root

# step prints how long a step took; one that fails ends the script with the
# last lines of its output.
step() {
	local name=$1 begin=$SECONDS
	shift
	"$@" >"$dir/log" 2>&1 & # in the background, where a command that fails still ends it
	if wait $!; then
		say "$name: $((SECONDS - begin)) s"
	else
		tail -n 60 "$dir/log" >&2
		fail "$name failed after $((SECONDS - begin)) s"
	fi
}

make_root() {
	local suite mirror
	# A root that is a mount, as any machine's is: unshare --mount refuses to work in another.
	mkdir -p "$root"
	mount --bind "$root" "$root"
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | sort -u | head -n 1)
	debootstrap --variant=minbase --include=ca-certificates,git,make,iproute2 "$suite" "$root" ${mirror:+"$mirror"}
	# How this machine reaches its package registries, and nothing else of it.
	rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
	for entry in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/trusted.gpg.d /etc/apt/keyrings \
		/usr/share/keyrings /etc/resolv.conf /etc/hosts /etc/ssl/certs /usr/local/share/ca-certificates; do
		[ -e "$entry" ] || continue
		mkdir -p "$root$(dirname "$entry")"
		rm -rf "$root$entry"
		cp -aL "$entry" "$root$entry"
	done
	rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*
	mkdir -p "$root/usr/local"
	cp -a "$(go env GOROOT)" "$root/usr/local/go"
	git clone -q --no-local . "$root/src"
	for tree in proc sys dev; do mount --rbind "/$tree" "$root/$tree"; done
	mount -t tmpfs -o mode=755 tmpfs "$root/run"
}

# in_root runs a command in the root, as that of the machine: the kernel makes no user
# namespaces for programs in a chroot.
in_root() {
	env -i PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
		GOTOOLCHAIN=local GOPROXY="$(go env GOPROXY)" GOSUMDB="$(go env GOSUMDB)" GONOSUMDB="$(go env GONOSUMDB)" \
		unshare --mount --propagation private bash -c '
			cd "$1" && mkdir -p outside && pivot_root . outside && cd / && umount -l outside && rmdir outside &&
				cd /src && exec bash -c "$2"' - "$root" "$1"
}

step "a clean Debian root" make_root
[ ! -e "$root/root/go" ] && [ ! -e "$root/root/.cache" ] && [ ! -e "$root/root/.npm" ] || fail "its caches are not empty"
[ -z "$(ls -A "$root/var/lib/apt/lists")" ] || fail "apt has lists already"
step "make quick" in_root "make quick"
step "make run" in_root "make run RUN_FLAGS='--for 20s'"
in_root "bin/cnibench report results/latest" | head -n 3
if [ -n "$full" ]; then
	step "make test" in_root "make test"
	step "make cluster-binaries" in_root "make cluster-binaries"
	step "a lab's Kubernetes with Cilium" in_root "bin/cnibench lab up --kubernetes --cni cilium && bin/cnibench lab down --all"
fi
[ -z "$(git -C "$root/src" status --porcelain)" ] || fail "the clone has changed: $(git -C "$root/src" status --porcelain | head -n 5)"
say "all of it works from nothing"
