#!/usr/bin/env bash
# Builds what a release contains, and publishes nothing: for each architecture a tar.gz
# with the static program, a deb, an rpm and an apk, and SHA256SUMS over all of them.
# The same sources and the same time give the same bytes, in any folder.
#
#   scripts/dist.sh [FOLDER]       default: dist
#
# DIST_ARCHS        the architectures of Linux to build for (default: amd64 arm64)
# DIST_VERSION      the version (default: 0.1.0)
# SOURCE_DATE_EPOCH the time of all files (default: that of the last commit)
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC CGO_ENABLED=0 GOOS=linux

out=${1:-dist}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.."

version=${DIST_VERSION:-0.1.0}
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH=$epoch

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
host() { env -u GOOS -u GOARCH "$@"; }
host go build -o "$work/docfiles" ./internal/repo/docfiles
(cd tools/dist && host go build -o "$work/pack" .)
"$work/docfiles" "$work/docs"
gzip -9n "$work"/docs/man/*.1

# Nothing of an earlier build may be in the checksums.
rm -f "$out"/cnibench[-_]*.{tar.gz,deb,rpm,apk} "$out/SHA256SUMS"
for arch in ${DIST_ARCHS:-amd64 arm64}; do
	name=cnibench-$version-linux-$arch
	stage=$work/$name
	mkdir "$stage"
	cp -r "$work/docs/." LICENSE "$stage/"
	GOARCH=$arch go build -trimpath -buildvcs=false \
		-ldflags "-s -w -X github.com/cnibench/cnibench/internal/cli.linkedVersion=v$version" \
		-o "$stage/cnibench" .
	tar -C "$work" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
		--mode=u=rwX,go=rX --format=gnu -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
	"$work/pack" -stage "$stage" -version "$version" -arch "$arch" -epoch "$epoch" -out "$out"
	rm -r "$stage"
done
(cd "$out" && sha256sum cnibench[-_]*.{tar.gz,deb,rpm,apk} >SHA256SUMS)
echo "dist: version $version in $out:"
(cd "$out" && du -h --apparent-size cnibench[-_]* SHA256SUMS)
