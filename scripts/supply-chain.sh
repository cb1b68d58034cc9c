#!/usr/bin/env bash
# Checks what the program is made of.
#
#   supply-chain.sh offline          licences and SBOM of what is linked, and two builds
#                                    with one hash. Needs the Go module proxy at the most.
#   supply-chain.sh licences         the first two alone, in a minute: what .ci/run does
#   supply-chain.sh vulnerabilities  known vulnerabilities, of Go by govulncheck and of the
#                                    report's script by npm audit. Needs their databases.
#   supply-chain.sh                  both
#
# Exit status: 0 all is checked and good, 1 a finding, 2 wrong usage, 4 no finding, but a
# database could not be reached: what is not checked is named. BIN is the folder that
# govulncheck is installed into (bin unless set), GOVULNDB another database for it.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0

GOVULNCHECK=golang.org/x/vuln/cmd/govulncheck@v1.9.0
findings=() unchecked=()

build() { go build -trimpath -buildvcs=false -ldflags '-X github.com/cnibench/cnibench/internal/cli.linkedVersion=reproducible' -o "$1" .; }

# licences also writes the SBOM, of the program as it is built here.
licences() {
	build bin/cnibench-reproducible && go build -o bin/supplychain ./internal/repo/supplychain &&
		go list -deps -json=ImportPath,Dir,Module,Standard . |
		bin/supplychain -binary bin/cnibench-reproducible -bundle web/LICENSES.txt -sbom bin/cnibench.cdx.json
}

# reproducible builds the same files in another folder, with nothing from the build cache.
reproducible() {
	local copy status=0 one other
	copy=$(mktemp -d)
	mkdir "$copy/elsewhere" "$copy/cache"
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --no-dereference -t "$copy/elsewhere" || status=1
	(cd "$copy/elsewhere" && GOCACHE=$copy/cache build "$copy/cnibench") || status=1
	if [ "$status" -eq 0 ]; then
		one=$(sha256sum <bin/cnibench-reproducible)
		other=$(sha256sum <"$copy/cnibench")
		echo "here      ${one%% *}"
		echo "elsewhere ${other%% *}"
		[ "$one" = "$other" ] || status=1
	fi
	rm -rf "$copy"
	return "$status"
}

# vulnerable_go: govulncheck ends with 3 where it found something, with 1 where it could
# not look.
vulnerable_go() {
	local status=0 log bin=${BIN:-$PWD/bin}
	log=$(mktemp)
	if ! GOBIN=$bin go install "$GOVULNCHECK"; then
		unchecked+=("vulnerabilities of Go modules: $GOVULNCHECK cannot be built")
		return
	fi
	"$bin/govulncheck" ${GOVULNDB:+-db "$GOVULNDB"} ./... >"$log" 2>&1 || status=$?
	cat "$log"
	case "$status" in
	0) ;;
	3) findings+=("vulnerabilities of Go modules") ;;
	*)
		if grep -q 'fetching vulnerabilities' "$log"; then
			unchecked+=("vulnerabilities of Go modules: the database cannot be reached; GOVULNDB names another")
		else
			findings+=("govulncheck failed")
		fi
		;;
	esac
	rm -f "$log"
}

# vulnerable_npm: npm ends with 1 both where it found something and where it could not
# look; only a report has a version.
vulnerable_npm() {
	local status=0 report
	report=$(cd web && npm audit --package-lock-only --json 2>/dev/null) || status=$?
	if ! grep -q '"auditReportVersion"' <<<"$report"; then
		unchecked+=("vulnerabilities of npm packages: the registry does not answer npm audit")
	elif [ "$status" -ne 0 ]; then
		printf '%s\n' "$report"
		findings+=("vulnerabilities of npm packages")
	fi
}

offline() {
	licences || findings+=("licences")
	reproducible || findings+=("two builds of the same files differ, or one failed")
}

vulnerabilities() {
	vulnerable_go
	vulnerable_npm
}

mkdir -p bin
case "${1:-all}" in
licences) licences || findings+=("licences") ;;
offline) offline ;;
vulnerabilities) vulnerabilities ;;
all)
	offline
	vulnerabilities
	;;
*)
	echo "supply-chain.sh: $1: want licences, offline or vulnerabilities, or nothing for all" >&2
	exit 2
	;;
esac

[ ${#unchecked[@]} -eq 0 ] || printf 'supply-chain: NOT CHECKED: %s\n' "${unchecked[@]}" >&2
[ ${#findings[@]} -eq 0 ] || { printf 'supply-chain: FAILED: %s\n' "${findings[@]}" >&2; exit 1; }
[ ${#unchecked[@]} -eq 0 ] || exit 4
echo "supply-chain: ${1:-all} checked, no finding"
