package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"

	"github.com/cnibench/cnibench/internal/kubeclient"
)

// Serve makes the cluster's API reachable over HTTP on loopback, for programs in other
// processes, and gives a kubeconfig for it. The server ends with the test. It knows what
// cnibench asks for: objects by their names and labels, and exec by WebSocket.
func (c *Cluster) Serve(t testing.TB) (kubeconfig string) {
	t.Helper()
	klog.SetLogger(logr.Discard()) // which logs each connection that a killed program leaves
	server := httptest.NewServer(c)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: fake\nclusters: [{name: c, cluster: {server: %q}}]\n"+
		"users: [{name: u, user: {}}]\ncontexts: [{name: fake, context: {cluster: c, user: u}}]\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// request is one of the API's paths: /api/v1/namespaces/NAMESPACE/pods/NAME/SUBRESOURCE.
type request struct {
	resource                     schema.GroupVersionResource
	namespace, name, subresource string
}

func parse(path string) (r request, ok bool) {
	words := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(words) > 2 && words[0] == "api":
		r.resource.Version, words = words[1], words[2:]
	case len(words) > 3 && words[0] == "apis":
		r.resource.Group, r.resource.Version, words = words[1], words[2], words[3:]
	default:
		return r, false
	}
	if words[0] == "namespaces" && len(words) > 2 {
		r.namespace, words = words[1], words[2:]
	}
	r.resource.Resource = words[0]
	if len(words) > 1 {
		r.name = words[1]
	}
	if len(words) > 2 {
		r.subresource = words[2]
	}
	return r, len(words) <= 3
}

// ServeHTTP answers one request.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	if h.URL.Path == "/version" {
		reply(w, http.StatusOK, version.Info{Major: "1", Minor: "34", GitVersion: "v1.34.0"})
		return
	}
	r, ok := parse(h.URL.Path)
	if ok && r.subresource == "exec" {
		c.serveExec(w, h, r)
		return
	}
	object, err := c.do(h, r, ok)
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		said := status.Status()
		said.Kind, said.APIVersion = "Status", "v1"
		reply(w, int(said.Code), said)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case h.Method == http.MethodPost:
		reply(w, http.StatusCreated, typed(object))
	default:
		reply(w, http.StatusOK, typed(object))
	}
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // nobody is left to hear of an answer that cannot be written
}

// typed is a copy of an object that says its kind, as answers do.
func typed(object runtime.Object) runtime.Object {
	if object == nil {
		return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}
	}
	object = object.DeepCopyObject()
	if kinds, _, err := scheme.Scheme.ObjectKinds(object); err == nil {
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	return object
}

// do carries out what a request asks for.
func (c *Cluster) do(h *http.Request, r request, known bool) (runtime.Object, error) {
	notFound := apierrors.NewNotFound(r.resource.GroupResource(), r.name)
	if !known || r.subresource != "" {
		return nil, notFound
	}
	body, err := io.ReadAll(h.Body)
	if err != nil {
		return nil, err
	}
	switch {
	case h.Method == http.MethodPost || h.Method == http.MethodPut:
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if h.Method == http.MethodPut {
			return c.API.Invokes(clienttesting.NewUpdateAction(r.resource, r.namespace, object), object)
		}
		return c.API.Invokes(clienttesting.NewCreateAction(r.resource, r.namespace, object), object)
	case h.Method == http.MethodDelete:
		var options metav1.DeleteOptions
		if len(body) > 0 {
			if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &options); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
		}
		_, err := c.API.Invokes(clienttesting.NewDeleteActionWithOptions(r.resource, r.namespace, r.name, options), nil)
		return nil, err
	case r.name != "":
		object, err := c.API.Invokes(clienttesting.NewGetAction(r.resource, r.namespace, r.name), nil)
		if err == nil && object == nil {
			return nil, notFound
		}
		return object, err
	}
	return c.list(h, r)
}

// kinds are those of the lists that cnibench asks for.
func kinds() map[string]string {
	return map[string]string{"pods": "Pod", "services": "Service", "leases": "Lease", "networkpolicies": "NetworkPolicy", "endpointslices": "EndpointSlice",
		"namespaces": "Namespace", "nodes": "Node", "daemonsets": "DaemonSet", "events": "Event", "configmaps": "ConfigMap"}
}

// list gives the objects of a kind that have the labels asked for.
func (c *Cluster) list(h *http.Request, r request) (runtime.Object, error) {
	kind := kinds()[r.resource.Resource]
	if kind == "" {
		return nil, apierrors.NewNotFound(r.resource.GroupResource(), "")
	}
	wanted, err := labels.Parse(h.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	list, err := c.API.Invokes(clienttesting.NewListAction(r.resource, r.resource.GroupVersion().WithKind(kind), r.namespace, metav1.ListOptions{}), nil)
	if err != nil || list == nil {
		return list, err
	}
	list = list.DeepCopyObject()
	all, err := apimeta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	var some []runtime.Object
	for _, o := range all {
		meta, err := apimeta.Accessor(o)
		if err != nil {
			return nil, err
		}
		if wanted.Matches(labels.Set(meta.GetLabels())) {
			some = append(some, o)
		}
	}
	return list, apimeta.SetList(list, some)
}

// serveExec runs an agent over a WebSocket, with the channels of Kubernetes' fifth
// protocol: stdin, stdout, stderr, how it ended, and the terminal's size.
func (c *Cluster) serveExec(w http.ResponseWriter, h *http.Request, r request) {
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{"v5.channel.k8s.io": {Binary: true, Channels: []wsstream.ChannelType{
		wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.IgnoreChannel}}})
	_, streams, err := conn.Open(w, h)
	if err != nil {
		return // the client has gone
	}
	defer conn.Close()
	// The end of the stream is the end of the input: an agent then ends.
	err = c.exec(context.WithoutCancel(h.Context()), kubeclient.Target{Namespace: r.namespace, Pod: r.name}, nil, kubeclient.Streams{Stdin: streams[0], Stdout: streams[1], Stderr: streams[2]})
	status := metav1.Status{Status: metav1.StatusSuccess}
	if err != nil {
		status = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
	}
	_ = json.NewEncoder(streams[3]).Encode(status) // the client may have gone
}
