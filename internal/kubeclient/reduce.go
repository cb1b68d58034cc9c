package kubeclient

import (
	"errors"
	"fmt"
	"net/url"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// reducedName is what Reduce calls the context, the cluster and the user: their names in
// the file that it read are somebody else's.
const reducedName = "control-plane"

// Reduce reads a kubeconfig that came from another machine and returns one that has
// nothing but the server, its CA and the credentials of the current context, all of them
// inline. Nothing in it makes this machine run a program (exec, auth-provider), read one
// of its files (tokenFile, paths of certificates and keys) or use a proxy. Where the
// credentials are of such a kind, the error says so.
func Reduce(data []byte) ([]byte, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("it is no kubeconfig: %w", err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return nil, errors.New("it has no current context")
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return nil, errors.New("its current context has no cluster or no user")
	}
	server, err := url.Parse(cluster.Server)
	switch {
	case err != nil || server.Host == "" || server.User != nil:
		return nil, errors.New("its server is no URL")
	case server.Scheme != "https":
		return nil, fmt.Errorf("its server is reached by %q, which shows credentials to the network: want https", server.Scheme)
	case len(cluster.CertificateAuthorityData) == 0 && cluster.CertificateAuthority != "":
		return nil, inlineError("the CA", "a file")
	case cluster.InsecureSkipTLSVerify:
		return nil, errors.New("it leaves the server unverified (insecure-skip-tls-verify): name the CA in it")
	}
	if err := inline(user); err != nil {
		return nil, err
	}
	out := clientcmdapi.NewConfig()
	out.CurrentContext = reducedName
	out.Contexts[reducedName] = &clientcmdapi.Context{Cluster: reducedName, AuthInfo: reducedName}
	out.Clusters[reducedName] = &clientcmdapi.Cluster{Server: cluster.Server, TLSServerName: cluster.TLSServerName, CertificateAuthorityData: cluster.CertificateAuthorityData}
	out.AuthInfos[reducedName] = &clientcmdapi.AuthInfo{ClientCertificateData: user.ClientCertificateData, ClientKeyData: user.ClientKeyData, Token: user.Token}
	return clientcmd.Write(*out)
}

// inline refuses a user whose credentials are not in the kubeconfig itself.
func inline(user *clientcmdapi.AuthInfo) error {
	switch {
	case user.Exec != nil:
		return inlineError("the user's credentials", "a program (exec)")
	case user.AuthProvider != nil:
		return inlineError("the user's credentials", "an auth-provider")
	case user.TokenFile != "":
		return inlineError("the user's token", "a file (tokenFile)")
	case user.ClientCertificate != "" || user.ClientKey != "":
		return inlineError("the user's certificate", "a file")
	case user.Token == "" && (len(user.ClientCertificateData) == 0 || len(user.ClientKeyData) == 0):
		return errors.New("its user has neither a token nor a certificate with its key")
	}
	return nil
}

func inlineError(what, where string) error {
	return fmt.Errorf("%s would come from %s of this machine, which a kubeconfig from another one may not name (make one with: kubectl config view --raw --flatten --minify)", what, where)
}
