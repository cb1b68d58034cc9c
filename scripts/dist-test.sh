#!/usr/bin/env bash
# Tests what scripts/dist.sh builds, for this machine's architecture:
#
# - a build from a copy of the tree in another folder gives the same checksums
# - the deb has the program, its man pages and its completions
# - as root, in a clean Debian root (debootstrap): the deb installs, and version, doctor
#   and report on a recorded result run there; then it leaves no file when it is removed
#
#   scripts/dist-test.sh
#
# DIST_ROOT names an existing Debian root to install into, in place of a new one.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${DIST_VERSION:-0.1.0}
fail() { echo "dist-test: $*" >&2; exit 1; }
command -v dpkg-deb >/dev/null || { echo "dist-test: skipped: no dpkg-deb"; exit 0; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
DIST_ARCHS=$(go env GOARCH)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export DIST_ARCHS SOURCE_DATE_EPOCH

scripts/dist.sh "$work/first"
mkdir "$work/tree"
git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar -C "$work/tree" -xf -
(umask 077 && TZ=Asia/Tokyo "$work/tree/scripts/dist.sh" "$work/second")
diff "$work/first/SHA256SUMS" "$work/second/SHA256SUMS" || fail "two builds differ"
for sums in first second; do
	(cd "$work/$sums" && sha256sum --quiet -c SHA256SUMS) || fail "SHA256SUMS of the $sums build does not match its files"
done
[ "$(wc -l <"$work/first/SHA256SUMS")" = 4 ] || fail "SHA256SUMS does not list a tar.gz, a deb, an rpm and an apk"
echo "dist-test: two builds have the same checksums"

deb=$(echo "$work"/first/*.deb)
dpkg-deb -c "$deb" >"$work/contents"
for file in usr/bin/cnibench usr/share/man/man1/cnibench.1.gz usr/share/man/man1/cnibench-run.1.gz \
	usr/share/bash-completion/completions/cnibench usr/share/zsh/vendor-completions/_cnibench \
	usr/share/fish/vendor_completions.d/cnibench.fish usr/share/doc/cnibench/copyright; do
	grep -q -- "-r.*root/root.* ./$file\$" "$work/contents" || fail "the deb has no /$file that belongs to root"
done
if command -v rpm >/dev/null; then
	rpm -qlp "$work"/first/*.rpm | grep -qx /usr/share/zsh/site-functions/_cnibench || fail "the rpm has no zsh completion"
fi

if [ "$(id -u)" != 0 ]; then
	echo "dist-test: installing is skipped: not root"
	exit 0
fi
root=${DIST_ROOT:-$work/root}
if [ -z "${DIST_ROOT:-}" ]; then
	if ! command -v debootstrap >/dev/null; then
		echo "dist-test: installing is skipped: no debootstrap"
		exit 0
	fi
	# The release and the mirror of this machine's own apt.
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | sort -u | head -n 1)
	debootstrap --variant=minbase "$suite" "$root" ${mirror:+"$mirror"} >"$work/debootstrap.log" 2>&1 ||
		{ tail -n 20 "$work/debootstrap.log" >&2; fail "debootstrap failed"; }
fi
in_root() { env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb chroot "$root" "$@"; }
cp "$deb" "$root/tmp/cnibench.deb"
rm -rf "$root/tmp/recorded"
cp -r internal/result/testdata/v1 "$root/tmp/recorded"
in_root dpkg -i /tmp/cnibench.deb >"$work/install.log" 2>&1 || { cat "$work/install.log" >&2; fail "the deb does not install"; }

[ "$(in_root cnibench version)" = "cnibench v$version" ] || fail "cnibench version is $(in_root cnibench version), want v$version"
# doctor's status says whether this machine can measure; a clean root lacks tools.
in_root cnibench doctor >"$work/doctor" 2>&1 || [ $? = 1 ] || { cat "$work/doctor" >&2; fail "doctor does not run"; }
head -n 3 "$work/doctor"
in_root cnibench report /tmp/recorded >"$work/report" || fail "report does not run"
grep -q 'compared with the bare host' "$work/report" || { cat "$work/report" >&2; fail "report has no summary"; }
head -n 3 "$work/report"
in_root dpkg -P cnibench >"$work/remove.log" 2>&1 || { cat "$work/remove.log" >&2; fail "the deb does not uninstall"; }
[ -z "$(find "$root/usr" -name '*cnibench*')" ] || fail "the deb leaves files: $(find "$root/usr" -name '*cnibench*')"
echo "dist-test: the deb installs into a clean root, runs there, and leaves nothing"
