// Package examples carries the campaigns that cnibench runs without a file.
package examples

import _ "embed"

// Quickstart is examples/quickstart.yaml: five pod networks in the lab.
//
//go:embed quickstart.yaml
var Quickstart []byte

// Cluster is examples/cluster.yaml: the network of one Kubernetes cluster.
//
//go:embed cluster.yaml
var Cluster []byte
