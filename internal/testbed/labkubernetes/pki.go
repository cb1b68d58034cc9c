package labkubernetes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/cnibench/cnibench/internal/network"
)

// validity is how long certificates hold; a lab does not live that long.
const validity = 30 * 24 * time.Hour

// pki is the cluster's one authority, for servers and clients.
type pki struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte // of cert
}

// identity is a certificate with its key, as files and in memory.
type identity struct {
	certFile, keyFile string
	cert, key         []byte // PEM
}

// newPKI makes the authority and the certificates of servers.
func (c *Cluster) newPKI() (*pki, error) {
	p := &pki{dir: filepath.Join(c.Dir(), "pki")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := newTemplate(pkix.Name{CommonName: "cnibench lab " + c.lab.ID()}, 1)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	if p.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	p.key, p.pem = key, pemOf("CERTIFICATE", der)
	if _, err := p.write("ca", der, key); err != nil {
		return nil, err
	}
	if err := p.serviceAccountKey(); err != nil {
		return nil, err
	}
	control := c.lab.Control
	_, err = p.issue("apiserver", pkix.Name{CommonName: "kube-apiserver"},
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		addresses(netip.MustParseAddr("127.0.0.1"), control.Address.Addr(), control.Address6.Addr(),
			network.ServiceRange().Masked().Addr().Next(), serviceRange6().Addr().Next()))
	if err != nil {
		return nil, err
	}
	for _, n := range c.lab.Nodes {
		if _, err := p.issue("kubelet-"+n.Name, pkix.Name{CommonName: n.Name}, []string{n.Name},
			addresses(netip.MustParseAddr("127.0.0.1"), n.Address.Addr(), n.Address6.Addr())); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func newTemplate(subject pkix.Name, serial int64) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: subject, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(validity),
	}
}

// issue makes a certificate for a server that has names or addresses, and for a
// client in any case.
func (p *pki) issue(file string, subject pkix.Name, names []string, ips []net.IP) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	template := newTemplate(subject, time.Now().UnixNano())
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(names)+len(ips) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		template.DNSNames, template.IPAddresses = names, ips
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.cert, &key.PublicKey, p.key)
	if err != nil {
		return identity{}, fmt.Errorf("certificate of %s: %w", subject.CommonName, err)
	}
	return p.write(file, der, key)
}

func (p *pki) write(file string, der []byte, key *ecdsa.PrivateKey) (identity, error) {
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return identity{}, err
	}
	id := identity{
		certFile: p.file(file + ".crt"), keyFile: p.file(file + ".key"),
		cert: pemOf("CERTIFICATE", der), key: pemOf("EC PRIVATE KEY", keyDER),
	}
	if err := os.WriteFile(id.certFile, id.cert, 0o600); err != nil {
		return identity{}, err
	}
	return id, os.WriteFile(id.keyFile, id.key, 0o600)
}

// serviceAccountKey makes what tokens of service accounts are signed with.
func (p *pki) serviceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.file("service-accounts.key"), pemOf("EC PRIVATE KEY", private), 0o600); err != nil {
		return err
	}
	return os.WriteFile(p.file("service-accounts.pub"), pemOf("PUBLIC KEY", public), 0o600)
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func addresses(all ...netip.Addr) []net.IP {
	var ips []net.IP
	for _, a := range all {
		if a.IsValid() {
			ips = append(ips, a.AsSlice())
		}
	}
	return ips
}
