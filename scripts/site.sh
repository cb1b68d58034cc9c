#!/usr/bin/env bash
# Builds the site from the documents of this tree into a folder, and checks its links and
# headings (mkdocs build --strict), and with chromium that every page fits into a phone. It
# needs Python 3.10 or later with venv, and a package index that pip can reach.
#
#   scripts/site.sh [FOLDER]       default: dist/site
#
# With CNIBENCH_SITE_OPTIONAL=1 it succeeds where Python or the package index is missing,
# and says that no site was built.
#
# The programs are those of tools/site/requirements.txt, with pinned versions and hashes, in
# a virtual environment in the user's cache (CNIBENCH_SITE_VENV names another).
set -euo pipefail

out=${1:-dist/site}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.."

fail() { echo "site: $*" >&2; exit 1; }
# lacks ends where this machine cannot build a site at all.
lacks() {
	if [ "${CNIBENCH_SITE_OPTIONAL:-}" = 1 ]; then echo "site: not built: $*"; exit 0; fi
	fail "$*"
}

# A folder with anything but a site is somebody's own.
[ -z "$(ls -A "$out")" ] || [ -f "$out/sitemap.xml" ] || fail "$out is not empty and has no site"
requirements=tools/site/requirements.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${CNIBENCH_SITE_VENV:-$(scripts/venv.sh "$requirements" 2>"$work/log")} || lacks "$(cat "$work/log")"
go run ./internal/repo/site . "$work"
# Pages get the date of the last commit, so that the same documents give the same site.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
NO_MKDOCS_2_WARNING=1 "$venv/bin/python" -m mkdocs build --quiet --strict -f "$work/mkdocs.yml" -d "$work/site"
# A page that is wider than a phone is an error, where a browser can look.
if command -v chromium >/dev/null; then
	go run ./internal/repo/sitecheck "$work/site"
else
	echo "site: the width of pages is not checked: no chromium"
fi
find "$out" -mindepth 1 -delete
cp -r "$work/site/." "$out"
echo "site: $(find "$out" -name '*.html' | wc -l) pages in $out"
