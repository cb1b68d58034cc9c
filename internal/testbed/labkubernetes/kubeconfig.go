package labkubernetes

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"

	"github.com/cnibench/cnibench/internal/wholefile"
)

// adminGroup may do all in every Kubernetes.
const adminGroup = "system:masters"

// Kubeconfig writes one for a user with groups, for use on nodes, and gives its
// path. A user without groups has what roles give to its name.
func (c *Cluster) Kubeconfig(user string, groups ...string) (string, error) {
	id, err := c.pki.issue("client-"+fileName(user), pkix.Name{CommonName: user, Organization: groups}, nil, nil)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.Dir(), "pki", "kubeconfig-"+fileName(user))
	return path, c.writeKubeconfig(path, c.serverOnNodes(), user, id)
}

// serverOnNodes is the API server's address on the nodes' link.
func (c *Cluster) serverOnNodes() string {
	return fmt.Sprintf("https://%s:%d", c.lab.Control.Address.Addr(), apiPort)
}

// adminKubeconfig writes the one for people on this machine.
func (c *Cluster) adminKubeconfig(server string, id identity) error {
	k := c.lab.Recorded()
	if k.Kubeconfig == "" {
		k.Kubeconfig = filepath.Join(c.Dir(), "kubeconfig")
	}
	k.Server = server
	if err := CheckKubeconfig(k.Kubeconfig); err != nil { // it may have come to be meanwhile
		return err
	}
	if err := c.writeKubeconfig(k.Kubeconfig, server, "admin", id); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	return c.lab.Save()
}

func (c *Cluster) writeKubeconfig(path, server, user string, id identity) error {
	type m = yaml.MapSlice
	data, err := yaml.Marshal(m{
		{Key: "apiVersion", Value: "v1"},
		{Key: "kind", Value: "Config"},
		{Key: "clusters", Value: []m{{
			{Key: "name", Value: c.Spec.Name},
			{Key: "cluster", Value: m{{Key: "server", Value: server}, {Key: "certificate-authority-data", Value: encoded(c.pki.pem)}}},
		}}},
		{Key: "users", Value: []m{{
			{Key: "name", Value: c.Spec.Name + "-" + user},
			{Key: "user", Value: m{{Key: "client-certificate-data", Value: encoded(id.cert)}, {Key: "client-key-data", Value: encoded(id.key)}}},
		}}},
		{Key: "contexts", Value: []m{{
			{Key: "name", Value: c.Spec.Name},
			{Key: "context", Value: m{{Key: "cluster", Value: c.Spec.Name}, {Key: "user", Value: c.Spec.Name + "-" + user}}},
		}}},
		{Key: "current-context", Value: c.Spec.Name},
	})
	if err != nil {
		return err
	}
	return replace(path, append([]byte(writtenHere+"\n"), data...))
}

// writtenHere is the first line of every kubeconfig of a lab.
const writtenHere = "# Written by cnibench lab up for a lab's Kubernetes, and replaced by the next one."

// CheckKubeconfig refuses to replace a file that no lab wrote: a kubeconfig may
// hold the only credentials of a cluster.
func CheckKubeconfig(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if info.Mode().IsRegular() {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("--kubeconfig: %w", err)
		}
		if len(data) == 0 || bytes.HasPrefix(data, []byte(writtenHere)) {
			return nil
		}
	}
	return fmt.Errorf("--kubeconfig: %s exists and was not written by lab up: name another file, or remove this one", path)
}

// replace writes a file that only its owner can read, whole or not at all.
func replace(path string, data []byte) error {
	return wholefile.Write(path, "."+filepath.Base(path)+"-*", 0o600, wholefile.Bytes(data))
}

func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// fileName is a user's name as part of one.
func fileName(user string) string {
	out := []byte(user)
	for i, b := range out {
		if b == ':' || b == '/' {
			out[i] = '-'
		}
	}
	return string(out)
}
