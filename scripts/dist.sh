#!/usr/bin/env bash
# Builds what a release contains, and publishes nothing: for each platform a tar.gz with
# the static program, for Linux also a deb, an rpm and an apk, then SHA256SUMS over all of
# them, with an SBOM (CycloneDX) for each platform, a krew manifest and a Homebrew formula.
# It ends with 1 where a package lacks a file or has a program for another platform.
# The same sources and the same time give the same bytes, in any folder.
#
#   scripts/dist.sh [FOLDER]       default: dist
#
# DIST_PLATFORMS    what to build for (default: darwin/amd64 darwin/arm64 linux/amd64 linux/arm64)
# DIST_VERSION      the version (default: 0.1.0)
# DIST_BASE         the address of the archives in the manifests (default: the version's release on GitHub)
# SOURCE_DATE_EPOCH the time of all files (default: that of the last commit)
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC CGO_ENABLED=0

out=${1:-dist}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.."

version=${DIST_VERSION:-0.1.0}
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH=$epoch

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/docfiles" ./internal/repo/docfiles
go build -o "$work/release" ./internal/repo/release
go build -o "$work/supplychain" ./internal/repo/supplychain
(cd tools/dist && go build -o "$work/pack" .)
"$work/docfiles" "$work/docs"
gzip -9n "$work"/docs/man/*.1

# Nothing of an earlier build may be in the checksums.
rm -f "$out"/cnibench[-_]*.{tar.gz,deb,rpm,apk,cdx.json} "$out"/cnibench.{yaml,rb} "$out/SHA256SUMS"
for platform in ${DIST_PLATFORMS:-darwin/amd64 darwin/arm64 linux/amd64 linux/arm64}; do
	os=${platform%/*} arch=${platform#*/}
	name=cnibench-$version-$os-$arch
	stage=$work/$name
	mkdir "$stage"
	cp -r "$work/docs/." LICENSE "$stage/"
	GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false \
		-ldflags "-s -w -X github.com/cnibench/cnibench/internal/cli.linkedVersion=v$version" \
		-o "$stage/cnibench" .
	GOOS=$os GOARCH=$arch go list -deps -json=ImportPath,Dir,Module,Standard . |
		"$work/supplychain" -binary "$stage/cnibench" -bundle web/LICENSES.txt -sbom "$out/$name.cdx.json" >/dev/null
	tar -C "$work" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
		--mode=u=rwX,go=rX --format=gnu -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
	if [ "$os" = linux ]; then
		"$work/pack" -stage "$stage" -version "$version" -arch "$arch" -epoch "$epoch" -out "$out"
	fi
	rm -r "$stage"
done
shopt -s nullglob # macOS alone has no packages
(cd "$out" && sha256sum cnibench[-_]*.{tar.gz,deb,rpm,apk,cdx.json} >SHA256SUMS)
"$work/release" -dir "$out" -version "$version" ${DIST_BASE:+-base "$DIST_BASE"}
echo "dist: version $version in $out:"
(cd "$out" && du -h --apparent-size cnibench[-_.]* SHA256SUMS)
