#!/usr/bin/env bash
# Builds the five Kubernetes programs into the folder given. Called by
# scripts/cluster-binaries.sh, which sets the environment of the build.
set -euo pipefail

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
# What `kubelet --version` and the API's /version say; without these they say v0.0.0,
# which other programs take for a cluster that is too old.
stamp="-X k8s.io/component-base/version.gitVersion=$version"
for half in "gitMajor=1" "gitMinor=${version#v1.}"; do
	stamp+=" -X k8s.io/component-base/version.${half%.*}"
done
go build -o "$1/" -ldflags "-s -w $stamp" \
	k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kube-proxy,kubelet}
