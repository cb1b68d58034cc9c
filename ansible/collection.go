// Package ansible is the Ansible collection cnibench.testbed, carried by the
// program: its roles change and restore hosts, its profiles are read here too.
package ansible

import "embed"

// Files is the collection as it stands in this folder.
//
//go:embed README.md CHANGELOG.md galaxy.yml meta plugins playbooks profiles roles
var Files embed.FS
