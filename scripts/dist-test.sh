#!/usr/bin/env bash
# Tests what scripts/dist.sh builds, for this machine's architecture:
#
# - every package has its files and a program for its platform (dist.sh checks that), and
#   the sums in SHA256SUMS, the krew manifest and the Homebrew formula are those of the files
# - the deb has the program, its man pages and its completions
# - a build from a copy of the tree in another folder gives the same checksums
# - as root, in a clean Debian root (debootstrap): two commands, apt-get install of the deb
#   and cnibench run, lead to the summary in less than three minutes; version, doctor and
#   report on a recorded result run there; no file is left when the deb is removed
#
#   scripts/dist-test.sh           all of it
#   scripts/dist-test.sh -quick    all but the last
#
# In CI (CNIBENCH_CI=1) other checks run beside it, and the three minutes are the CPU time of
# the two commands: their time on the clock, which is printed, depends on the other checks too.
# For the same reason samples may fail there (status 4).
#
# DIST_ROOT names an existing Debian root to install into, in place of a new one.
# Mounts are in a namespace of their own and end with the script.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${DIST_VERSION:-0.1.0}
fail() { echo "dist-test: $*" >&2; exit 1; }
quick=
case "${1:-}" in
"") ;;
-quick) quick=yes ;;
*) echo "dist-test: unknown argument $1 (known: -quick)" >&2; exit 2 ;;
esac
command -v dpkg-deb >/dev/null || { echo "dist-test: skipped: no dpkg-deb"; exit 0; }
if [ -z "$quick" ] && [ "$(id -u)" = 0 ] && [ -z "${DIST_TEST_INSIDE:-}" ]; then
	DIST_TEST_INSIDE=yes exec unshare --mount --propagation private "$PWD/scripts/dist-test.sh"
fi

work=$(mktemp -d /var/tmp/cnb-dist-XXXXXX)
cleanup() {
	# The mounts of this namespace first: what is removed must be this folder's alone.
	awk -v dir="$work/" 'index($2, dir) == 1 { print $2 }' /proc/self/mounts | sort -r | xargs -r -n 1 umount -l
	rm -rf --one-file-system "$work"
}
trap cleanup EXIT
arch=$(go env GOARCH)
DIST_PLATFORMS=${DIST_PLATFORMS:-linux/$arch}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export DIST_PLATFORMS SOURCE_DATE_EPOCH

scripts/dist.sh "$work/first"
(cd "$work/first" && sha256sum --quiet -c SHA256SUMS) || fail "SHA256SUMS does not match its files"
for platform in $DIST_PLATFORMS; do
	archive=cnibench-$version-${platform/\//-}.tar.gz
	sum=$(sha256sum <"$work/first/$archive")
	for manifest in cnibench.yaml cnibench.rb; do
		grep -q "/$archive\"\?\$" "$work/first/$manifest" || fail "$manifest does not name $archive"
		grep -q "sha256:\? \"\?${sum%% *}\"\?\$" "$work/first/$manifest" || fail "$manifest does not have the sum of $archive"
	done
done
if command -v ruby >/dev/null; then ruby -c "$work/first/cnibench.rb" >/dev/null || fail "Ruby does not accept cnibench.rb"; fi

deb=$work/first/cnibench_$version-1_$arch.deb
dpkg-deb -c "$deb" >"$work/contents"
for file in usr/bin/cnibench usr/share/man/man1/cnibench.1.gz usr/share/man/man1/cnibench-run.1.gz \
	usr/share/bash-completion/completions/cnibench usr/share/zsh/vendor-completions/_cnibench \
	usr/share/fish/vendor_completions.d/cnibench.fish usr/share/doc/cnibench/copyright; do
	grep -q -- "-r.*root/root.* ./$file\$" "$work/contents" || fail "the deb has no /$file that belongs to root"
done
if command -v rpm >/dev/null; then
	rpm -qlp "$work"/first/*.rpm | grep -qx /usr/share/zsh/site-functions/_cnibench || fail "the rpm has no zsh completion"
fi
dpkg-deb -x "$deb" "$work/unpacked"
[ "$("$work/unpacked/usr/bin/cnibench" version)" = "cnibench v$version" ] || fail "the deb's program is not version v$version"
echo "dist-test: the packages are whole, and the manifests have their sums"

# The build cache is shared, so that this takes seconds: it shows that no folder, umask, time
# zone or order of files is in a package. scripts/supply-chain.sh offline compiles everything again.
mkdir "$work/tree"
git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar -C "$work/tree" -xf -
(umask 077 && TZ=Asia/Tokyo "$work/tree/scripts/dist.sh" "$work/second")
diff "$work/first/SHA256SUMS" "$work/second/SHA256SUMS" || fail "two builds differ"
(cd "$work/second" && sha256sum --quiet -c SHA256SUMS) || fail "SHA256SUMS of the second build does not match its files"
echo "dist-test: two builds in different folders have the same checksums"
[ -z "$quick" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "dist-test: installing is skipped: not root"
	exit 0
fi
root=${DIST_ROOT:-$work/root}
if [ -z "${DIST_ROOT:-}" ]; then
	if ! command -v debootstrap >/dev/null; then
		[ -z "${CNIBENCH_CI:-}" ] || fail "no debootstrap"
		echo "dist-test: installing is skipped: no debootstrap"
		exit 0
	fi
	# The release, the mirror and the entries of this machine's own apt.
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | sort -u | head -n 1)
	debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" ${mirror:+"$mirror"} >"$work/debootstrap.log" 2>&1 ||
		{ tail -n 20 "$work/debootstrap.log" >&2; fail "debootstrap failed"; }
	rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
	for entry in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/trusted.gpg.d /etc/apt/keyrings \
		/usr/share/keyrings /etc/resolv.conf /etc/hosts /etc/ssl/certs /usr/local/share/ca-certificates; do
		[ -e "$entry" ] || continue
		mkdir -p "$root$(dirname "$entry")"
		rm -rf "${root:?}$entry"
		cp -aL "$entry" "$root$entry"
	done
fi
in_root() { env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
# quietly prints the output of a command only if it fails.
quietly() {
	local name=$1
	shift
	"$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; fail "$name failed"; }
}
for tree in proc sys dev; do mount --rbind "/$tree" "$root/$tree"; done
mount -t tmpfs -o mode=755 tmpfs "$root/run"
cp "$deb" "$root/tmp/cnibench.deb"
rm -rf "$root/tmp/recorded"
cp -r internal/result/testdata/v1 "$root/tmp/recorded"
quietly "apt-get update" in_root apt-get update -q

# cpu sets used to the CPU time of all commands that have ended, in seconds.
cpu() {
	times >"$work/times"
	used=$(awk -F '[ms ]+' 'NR == 2 { printf "%d", 60 * ($1 + $3) + $2 + $4 }' "$work/times")
}
# measures is cnibench run, with the status of failed samples where those may fail.
measures() {
	local status=0
	in_root sh -c 'cd /tmp && cnibench run --for 20s' || status=$?
	[ "$status" = 0 ] || { [ "$status" = 4 ] && [ -n "${CNIBENCH_CI:-}" ]; }
}

# A new user's two commands, at the usual priority.
chrt --other --pid 0 $$ || true
begin=$SECONDS
cpu
before=$used
quietly "apt-get install of the deb" in_root apt-get install -y -q /tmp/cnibench.deb
installed=$SECONDS
quietly "cnibench run" measures
took=$((SECONDS - begin))
cpu
used=$((used - before))
grep -q 'compared with the bare host' "$work/log" || { cat "$work/log" >&2; fail "the run ends without a summary"; }
grep -A 9 'compared with the bare host' "$work/log"
echo "dist-test: from the deb to the summary: two commands, $took s ($((installed - begin)) s of them installing), $used s of CPU time"
if [ -n "${CNIBENCH_CI:-}" ]; then took=$used; fi
[ "$took" -lt 180 ] || fail "from the deb to the summary it took $took s, want less than 180"

[ "$(in_root cnibench version)" = "cnibench v$version" ] || fail "cnibench version is $(in_root cnibench version), want v$version"
# doctor's status says whether this machine can measure.
in_root cnibench doctor >"$work/doctor" 2>&1 || [ $? = 1 ] || { cat "$work/doctor" >&2; fail "doctor does not run"; }
head -n 3 "$work/doctor"
in_root cnibench report /tmp/recorded >"$work/report" || fail "report does not run"
grep -q 'compared with the bare host' "$work/report" || { cat "$work/report" >&2; fail "report has no summary"; }
in_root dpkg -P cnibench >"$work/remove.log" 2>&1 || { cat "$work/remove.log" >&2; fail "the deb does not uninstall"; }
[ -z "$(find "$root/usr" -name '*cnibench*')" ] || fail "the deb leaves files: $(find "$root/usr" -name '*cnibench*')"
echo "dist-test: the deb installs into a clean root, runs there, and leaves nothing"
