#!/bin/sh
# Installs the published tools that cnibench can drive, and what networks run on each
# node: Open vSwitch, OVN, Docker, Podman's netavark and pasta, HAProxy, Charliecloud (Debian and Ubuntu), or with the argument
# "hosts" what the tests of bare machines need: sshd, Ansible, tuned, PostgreSQL;
# with "kubernetes" what a lab's Kubernetes needs beside make cluster-binaries.
#
#   scripts/install-tools.sh [tools|hosts|kubernetes]
#
# netperf is not in Debian's main component. Where apt does not know it, its
# component (Debian: non-free, Ubuntu: multiverse) is added in a sources file of
# its own, copied from the entry that this machine already uses for main: same
# mirror, same key. Nothing else of apt's settings changes.
#
# No service is started, now or at the next boot, by what this installs.
# Run again, it changes nothing.
set -eu

# SERVICES is what these packages would run, DAEMONS the processes of those.
case "${1:-tools}" in
tools)
	PACKAGES="iperf3 sockperf netperf redis-server redis-tools wrk nginx-light ethtool nftables openvswitch-switch netavark passt openmpi-bin mpich hpcc netpipe-openmpi netpipe-mpich2 ovn-central ovn-host haproxy charliecloud-runtime"
	SERVICES="redis-server nginx netperf iperf3 nftables openvswitch-switch ovn-central ovn-host docker containerd haproxy"
	DAEMONS="redis-server nginx netserver iperf3 ovs-vswitchd ovsdb-server ovn-northd ovn-controller dockerd containerd haproxy"
	# Docker's own packages conflict with Debian's: whoever has them keeps them.
	if ! command -v dockerd >/dev/null; then PACKAGES="$PACKAGES docker.io"; fi ;;
hosts)
	PACKAGES="openssh-server ansible-core ansible-lint tuned postgresql"
	SERVICES="ssh tuned postgresql"
	DAEMONS="sshd tuned postgres" ;;
kubernetes)
	PACKAGES="etcd-server containerd runc conntrack ipset clang-19"
	SERVICES="etcd containerd"
	DAEMONS="etcd containerd" ;;
*) echo "install-tools: unknown argument $1 (known: tools, hosts, kubernetes)" >&2; exit 2 ;;
esac

SOURCES_DIR=${SOURCES_DIR:-/etc/apt/sources.list.d}
POLICY=${POLICY:-/usr/sbin/policy-rc.d}
HELD=$POLICY.before-cnibench
MARK="# Written by cnibench scripts/install-tools.sh, and holds while that runs."

say() { echo "install-tools: $*"; }
fail() { echo "install-tools: $*" >&2; exit 1; }

installed() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

# candidate tells whether apt could install a package now.
candidate() { apt-cache policy "$1" | grep -q 'Candidate: [^(]'; }

# distribution prints: origin codename component.
distribution() {
	. /etc/os-release
	case "${ID:-}" in
	debian) echo "Debian ${VERSION_CODENAME:-} non-free" ;;
	ubuntu) echo "Ubuntu ${VERSION_CODENAME:-} multiverse" ;;
	*) fail "neither Debian nor Ubuntu (ID=${ID:-none}): install these by hand: $PACKAGES" ;;
	esac
}

# entry_for prints the apt entry of FILE for SITE and SUITE with COMPONENT in
# place of its components: a stanza of a .sources file or a line of a .list.
entry_for() {
	file=$1 site=$2 suite=$3 component=$4
	case "$file" in
	*.sources)
		awk -v RS= -v site="$site" -v suite="$suite" -v component="$component" '
		function has(field, word,   i, n, w) {
			n = split(field, w, /[ \t\n]+/)
			for (i = 1; i <= n; i++) { sub(/\/$/, "", w[i]); if (w[i] == word) return 1 }
			return 0
		}
		{
			n = split($0, line, "\n"); uris = ""; suites = ""; types = ""; out = ""; key = ""
			for (i = 1; i <= n; i++) {
				if (line[i] ~ /^#/) continue
				if (line[i] ~ /^[^ \t]/) { key = tolower(line[i]); sub(/:.*/, "", key) }
				if (key == "uris") uris = uris " " line[i]
				else if (key == "suites") suites = suites " " line[i]
				else if (key == "types") types = types " " line[i]
				else if (key != "components") out = out line[i] "\n"
			}
			if (!has(uris, site) || !has(suites, suite) || !has(types, "deb")) next
			printf "Types: deb\nURIs: %s\nSuites: %s\nComponents: %s\n%s", site, suite, component, out
			exit
		}' "$file" ;;
	*)
		awk -v site="$site" -v suite="$suite" -v component="$component" '
		$1 == "deb" {
			found = 0; out = $1
			for (i = 2; i < NF; i++) {
				out = out " " $i
				uri = $i; sub(/\/$/, "", uri)
				if (uri == site) found = 1
				if (found && $i == suite) { print out, component; exit }
			}
		}' "$file" ;;
	esac
}

# add_component writes the sources file that makes netperf known.
add_component() {
	dist=$(distribution) # fails here where it fails
	# shellcheck disable=SC2086 # three words
	set -- $dist
	[ $# -eq 3 ] || fail "/etc/os-release names no VERSION_CODENAME: install netperf by hand"
	origin=$1 codename=$2 component=$3
	target=$(apt-get indextargets --format '$(ORIGIN)|$(CODENAME)|$(COMPONENT)|$(RELEASE)|$(SITE)|$(SOURCESENTRY)' 'Created-By: Packages' |
		awk -F'|' -v o="$origin" -v c="$codename" '$1 == o && $2 == c && $3 == "main" && $4 == c { print; exit }')
	[ -n "$target" ] || fail "apt knows no $origin $codename main: add a mirror of it to $SOURCES_DIR, then apt-get update"
	suite=$(echo "$target" | cut -d'|' -f4)
	site=$(echo "$target" | cut -d'|' -f5)
	from=$(echo "$target" | cut -d'|' -f6 | sed 's/:[0-9]*$//')
	entry=$(entry_for "$from" "${site%/}" "$suite" "$component")
	[ -n "$entry" ] || fail "no entry for $site $suite in $from: add the component $component to your apt sources by hand"
	case "$from" in
	*.sources) to=$SOURCES_DIR/cnibench-$component.sources ;;
	*) to=$SOURCES_DIR/cnibench-$component.list ;;
	esac
	say "netperf is in $origin's component $component: writing $to, from $from"
	printf '# Written by cnibench scripts/install-tools.sh, for netperf.\n%s\n' "$entry" >"$to"
	update
}

update() {
	say "apt-get update"
	apt-get update -q || fail "apt-get update failed: fix the apt sources and run this again"
}

# started prints when process $1 started, so that another with its number later is
# not taken for it.
started() { cut -d' ' -f22 "/proc/$1/stat" 2>/dev/null; }

# hold_services makes the packaging start no service while this runs. The policy
# holds only as long as this process lives: after a kill -9 it allows what the
# policy before it allows. With --held it says whether it holds.
hold_services() {
	if grep -qsxF "$MARK" "$POLICY"; then
		if sh "$POLICY" --held; then fail "another install-tools is running: wait for it to end"; fi
		release_services # it was killed
	fi
	rm -f "$HELD"
	if [ -e "$POLICY" ]; then cp -p "$POLICY" "$HELD"; fi
	trap release_services EXIT
	trap 'exit 1' HUP INT TERM
	cat >"$POLICY.new" <<-END
		#!/bin/sh
		$MARK
		started=\$(cut -d' ' -f22 /proc/$$/stat 2>/dev/null)
		if [ "\${1:-}" = --held ]; then [ "\$started" = "$(started $$)" ]; exit; fi
		[ "\$started" = "$(started $$)" ] && exit 101
		if [ -x "$HELD" ]; then exec "$HELD" "\$@"; fi
		exit 0
	END
	chmod 755 "$POLICY.new"
	mv "$POLICY.new" "$POLICY"
}

release_services() {
	rm -f "$POLICY.new"
	if [ -e "$HELD" ]; then
		mv "$HELD" "$POLICY"
	elif grep -qsxF "$MARK" "$POLICY"; then
		rm -f "$POLICY"
	fi
}

daemons() {
	for d in $DAEMONS; do
		for p in /proc/[0-9]*/comm; do
			if [ "$(cat "$p" 2>/dev/null)" = "$d" ]; then echo "$d $(basename "$(dirname "$p")")"; fi
		done
	done | sort
}

missing=
for p in $PACKAGES; do installed "$p" || missing="$missing $p"; done
if [ -z "$missing" ]; then
	say "all there already: $PACKAGES"
	exit 0
fi
if [ "$(id -u)" != 0 ]; then
	say "missing:$missing"
	say "installing them needs root: sudo sh scripts/install-tools.sh ${1:-tools}"
	exit 1
fi
command -v apt-get >/dev/null || fail "no apt-get here: install these by hand:$missing"

for p in $missing; do
	if [ "$p" != netperf ] && ! candidate "$p"; then update; break; fi
done
case "$missing" in *netperf*) candidate netperf || add_component ;; esac

new_services=
for s in $SERVICES; do
	[ -e "/etc/init.d/$s" ] || [ -e "/lib/systemd/system/$s.service" ] || new_services="$new_services $s"
done
before=$(daemons)
hold_services
say "apt-get install$missing"
# shellcheck disable=SC2086 # one word per package
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing ||
	fail "apt-get install failed; run it by hand to see more: apt-get install$missing"
for s in $new_services; do
	if [ -e "/etc/init.d/$s" ] || [ -e "/lib/systemd/system/$s.service" ]; then
		say "service $s will not start at boot: update-rc.d $s disable"
		update-rc.d "$s" disable >/dev/null 2>&1 || true # without an init system there is nothing to do
	fi
	# A socket would start the service for whoever connects. systemctl disable removes the
	# same link, where there is a systemctl.
	rm -f "/etc/systemd/system/sockets.target.wants/$s.socket"
done
after=$(daemons)
[ "$before" = "$after" ] || fail "a service was started by the installation; stop it: before: ${before:-none}; now: ${after:-none}"
for p in $PACKAGES; do installed "$p" || fail "$p is still missing"; done
say "installed:$missing; no service runs"
