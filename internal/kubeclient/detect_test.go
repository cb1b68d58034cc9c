package kubeclient

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// fixture is a file of testdata/detect: objects as an installation has them,
// without what no detector reads, and what must be found.
type fixture struct {
	// Source is where the objects are from.
	Source  string                   `json:"source"`
	Objects []map[string]interface{} `json:"objects"`
	Seen    Seen                     `json:"seen"`
	Want    Network                  `json:"want"`
}

func load(t *testing.T, path string) fixture {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f fixture
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return f
}

// serve is an API server that has these objects and refuses some paths.
func serve(t *testing.T, objects []map[string]interface{}, forbidden ...string) *Client {
	t.Helper()
	lists := map[string][]map[string]interface{}{}
	single := map[string]map[string]interface{}{}
	for _, o := range objects {
		meta, _ := o["metadata"].(map[string]interface{})
		switch o["kind"] {
		case "DaemonSet":
			if o["status"] == nil {
				o["status"] = map[string]interface{}{"desiredNumberScheduled": 2}
			}
			lists["/apis/apps/v1/daemonsets"] = append(lists["/apis/apps/v1/daemonsets"], o)
		case "Node":
			lists["/api/v1/nodes"] = append(lists["/api/v1/nodes"], o)
		case "ConfigMap":
			single["/api/v1/namespaces/"+meta["namespace"].(string)+"/configmaps/"+meta["name"].(string)] = o
		case "IPPool", "FelixConfiguration":
			group, named := o["apiVersion"].(string)
			if !named {
				group = "crd.projectcalico.org/v1"
			}
			path := "/apis/" + group + "/" + strings.ToLower(o["kind"].(string)) + "s"
			lists[path] = append(lists[path], o)
		default:
			t.Fatalf("an object of the kind %v", o["kind"])
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := func(code int, body any) {
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(body)
		}
		for _, f := range forbidden {
			if strings.Contains(r.URL.Path, f) {
				answer(403, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no " + f})
				return
			}
		}
		if one, ok := single[r.URL.Path]; ok {
			answer(200, one)
			return
		}
		list, ok := lists[r.URL.Path]
		if ok || r.URL.Path == "/api/v1/nodes" || r.URL.Path == "/apis/apps/v1/daemonsets" {
			answer(200, map[string]any{"items": list})
			return
		}
		answer(404, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "none"})
	}))
	t.Cleanup(server.Close)
	c, err := connect(&rest.Config{Host: server.URL}, "test", usual())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every known network is recognised by its objects.
func TestDetect(t *testing.T) {
	files, err := filepath.Glob("testdata/detect/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	known := map[string]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			f := load(t, file)
			got := serve(t, f.Objects).Detect(t.Context(), f.Seen)
			if diff := cmp.Diff(f.Want, got); diff != "" {
				t.Error(diff)
			}
			name, _, _ := strings.Cut(got.Name, "/")
			known[name] = true
		})
	}
	for _, d := range detectors() {
		if !known[d.name] {
			t.Errorf("no fixture is of %s", d.name)
		}
	}
}

// What may not be read is undetermined with its reason, and the name is not
// guessed.
func TestDetectWithoutRights(t *testing.T) {
	f := load(t, "testdata/detect/calico-ipip.yaml")
	got := serve(t, f.Objects, "/apis/", "/configmaps/").Detect(t.Context(), f.Seen)
	all := strings.Join(got.Undetermined, "\n")
	for _, want := range []string{"network: DaemonSets cannot be read", "DaemonSets: no /apis/", "calico-config, canal-config, cilium-config, kube-flannel-cfg, kube-proxy, kube-proxy-config: no /configmaps/", "ippools.crd.projectcalico.org: no /apis/", "kube_proxy: "} {
		if !strings.Contains(all, want) {
			t.Errorf("it does not say %q:\n%s", want, all)
		}
	}
	if got.Name != Unknown || got.Version != "" || got.Mode != (Mode{}) {
		t.Errorf("%+v", got)
	}
}

// A configuration that the nodes do not have yet is not what is measured.
func TestDetectHoldsConfigurationAgainstDevices(t *testing.T) {
	f := load(t, "testdata/detect/cilium-vxlan.yaml")
	f.Seen.Node.MTUs = map[string]int{"eth0": 1500, "cilium_host": 1500}
	got := serve(t, f.Objects).Detect(t.Context(), f.Seen)
	if got.Name != Unknown || !strings.Contains(strings.Join(got.Undetermined, "\n"), "configured as cilium/vxlan, but the node has no device cilium_vxlan") {
		t.Errorf("%+v", got)
	}
}

// Two networks' agents in one cluster: neither is named.
func TestDetectTwoNetworks(t *testing.T) {
	f, other := load(t, "testdata/detect/cilium-vxlan.yaml"), load(t, "testdata/detect/flannel-vxlan.yaml")
	got := serve(t, append(f.Objects, other.Objects...)).Detect(t.Context(), Seen{})
	if got.Name != Unknown || !strings.Contains(strings.Join(got.Undetermined, "\n"), "more than one: cilium, flannel") {
		t.Errorf("%+v", got)
	}
}
