#!/usr/bin/env bash
# Builds flannel's agent into the folder given. Called by scripts/cluster-binaries.sh,
# which sets the environment of the build.
set -euo pipefail

go build -o "$1/cnibench-flanneld" -ldflags "-s -w" .
