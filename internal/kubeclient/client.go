// Package kubeclient is the only package that speaks to a Kubernetes and imports
// client-go: it connects as a kubeconfig describes, runs programs in pods over the API
// server, finds out which network a cluster has, and what a user may do there.
package kubeclient

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/cnibench/cnibench/internal/answer"
)

// Client is a connection to one cluster.
type Client struct {
	// API makes requests; each is bounded in time.
	API kubernetes.Interface
	// Context is the kubeconfig's name for it, Server its API server's address.
	Context, Server string

	config *rest.Config
	// exec replaces the API server in tests; nil: the real one.
	exec Executor
}

// Connect reads a kubeconfig as kubectl does and prepares a connection; nothing
// is sent yet. An empty kubeconfig is $KUBECONFIG or ~/.kube/config, inside a pod
// its service account; an empty context is the current one.
func Connect(kubeconfig, context string) (*Client, error) {
	// What client-go logs in addition to its errors would get between a report's lines.
	klog.SetLogger(logr.Discard())
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if kubeconfig != "" {
		if _, err := os.Stat(kubeconfig); err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		rules.ExplicitPath = kubeconfig
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if context == "" {
		context = raw.CurrentContext
	} else if raw.Contexts[context] == nil {
		var names []string
		for name := range raw.Contexts {
			names = append(names, name)
		}
		return nil, fmt.Errorf("kubeconfig has no context %q (it has: %s)", context, strings.Join(names, ", "))
	}
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster: there is no kubeconfig (name one with --kubeconfig FILE or $KUBECONFIG)")
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig, context %s: %w", context, err)
	}
	return connect(config, context, usual())
}

func connect(config *rest.Config, context string, b bounds) (*Client, error) {
	config.UserAgent = "cnibench"
	config.WarningHandler = rest.NoWarnings{}
	// The requests of a set-up are many and small; they are bounded by its size.
	config.QPS, config.Burst = 100, 200
	limited := rest.CopyConfig(config)
	limited.Timeout = b.within
	limited.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next, b.most} })
	api, err := kubernetes.NewForConfig(limited)
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", context, err)
	}
	return &Client{API: api, Context: context, Server: config.Host, config: config}, nil
}

// NewClient is a connection of parts, for tests: an API and what runs programs in
// pods.
func NewClient(api kubernetes.Interface, exec Executor) *Client {
	return &Client{API: api, Context: "test", Server: "none", exec: exec}
}

// AbsKubeconfig is a kubeconfig's path relative to the file that names it.
func AbsKubeconfig(path, file string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// Explain makes one plain error of what an API server, or the way to it, said;
// doing is what was tried: "make a namespace". It wraps err.
func (c *Client) Explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	said := err.Error()
	if errors.As(err, &status) && status.Status().Message != "" {
		said = status.Status().Message
	}
	said = answer.Text(said) // it may hold what anybody wrote into the cluster
	e := &Error{Doing: doing, Said: said, err: err}
	var network net.Error
	var address *url.Error
	switch {
	case apierrors.IsUnauthorized(err):
		e.Said = "the API server does not know this user: " + said
		e.Cure = "log in again, or name another context with --context"
	case apierrors.IsForbidden(err) && strings.Contains(said, "exceeded quota"):
		e.Cure = "a quota does not allow it: kubectl describe quota, with -A or --namespace NAME"
	case apierrors.IsForbidden(err) && strings.Contains(said, "PodSecurity"):
		e.Cure = "the cluster's Pod Security does not allow it"
	case apierrors.IsForbidden(err):
		e.Cure = "what is needed is printed by: cnibench rbac"
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsServiceUnavailable(err):
		e.Cure = "the API server is busy: try again"
	case errors.As(err, &address) || errors.As(err, &network):
		e.Said = fmt.Sprintf("the API server of context %s (%s) does not answer: %s", c.Context, c.Server, said)
		e.Cure = "see that the cluster runs: kubectl --context " + c.Context + " get --raw /readyz"
	}
	return e
}

// Error is what a cluster would not do, in one line with its cure.
type Error struct {
	Doing, Said, Cure string
	err               error
}

func (e *Error) Error() string {
	s := e.Doing + ": " + e.Said
	if e.Cure != "" {
		s += " (" + e.Cure + ")"
	}
	return s
}

func (e *Error) Unwrap() error { return e.err }

// IsNotFound reports an object that does not exist.
func IsNotFound(err error) bool { return apierrors.IsNotFound(err) }

// IsForbidden reports a request that the user may not make, or that an admission
// refused.
func IsForbidden(err error) bool { return apierrors.IsForbidden(err) }

// IsAway reports an API server, or of a kubelet behind it, that does not answer.
func IsAway(err error) bool {
	var network net.Error
	var address *url.Error
	return apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		errors.As(err, &address) || errors.As(err, &network)
}

// IsConflict reports an object that is being changed or deleted already.
func IsConflict(err error) bool { return apierrors.IsConflict(err) }
