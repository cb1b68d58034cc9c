#!/usr/bin/env bash
# Builds Cilium's agent, operator and CNI plugin into the folder given, and copies
# there the C sources that the agent compiles at run time and the definitions of the
# API's objects that it needs. Called by scripts/cluster-binaries.sh, which sets the
# environment of the build.
set -euo pipefail

# Where it was never downloaded, go list gives no folder.
go mod download github.com/cilium/cilium
version=$(go list -m -f '{{.Version}}' github.com/cilium/cilium)
source=$(go list -m -f '{{.Dir}}' github.com/cilium/cilium)
# "VERSION REVISION DATE": an agent without it calls itself "go-version …".
stamp="-X 'github.com/cilium/cilium/pkg/version.ciliumVersion=${version#v} module $(date -u -d @0 +%FT%T+00:00)'"
# All at once, so that one program is linked while packages of another are compiled.
go build -o "$1/" -ldflags "-s -w $stamp" -tags ipam_provider_operator \
	github.com/cilium/cilium/{daemon,operator,plugins/cilium-cni}
mv "$1/daemon" "$1/cilium-agent"
mv "$1/operator" "$1/cilium-operator"

# What the module cache holds is read-only; this must be removable.
cp -r "$source/bpf" "$1/cilium-bpf"
cp -r "$source/pkg/k8s/apis/cilium.io/client/crds" "$1/cilium-crds"
chmod -R u+w "$1/cilium-bpf" "$1/cilium-crds"
rm -rf "$1/cilium-bpf/tests" "$1/cilium-bpf/complexity-tests"
