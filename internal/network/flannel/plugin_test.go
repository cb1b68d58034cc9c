package flannel

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

// A subnet.env as flannel's agent writes it becomes the configuration that flannel's
// plugin gives to the bridge plugin.
func TestFlannelDelegate(t *testing.T) {
	env, err := parseFlannelEnv(strings.Join([]string{
		"FLANNEL_NETWORK=10.244.0.0/16", "FLANNEL_SUBNET=10.244.3.1/24",
		"FLANNEL_IPV6_NETWORK=fd00:10::/56", "FLANNEL_IPV6_SUBNET=fd00:10:0:3::1/64",
		"FLANNEL_MTU=1450", "FLANNEL_IPMASQ=true", "",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := flannelConf{Delegate: map[string]any{"hairpinMode": true, "isDefaultGateway": true}}
	c.Name, c.CNIVersion = "cbr0", "0.3.1"
	got, err := json.Marshal(c.delegate(env))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"cniVersion":"0.3.1","hairpinMode":true,"ipMasq":false,` +
		`"ipam":{"ranges":[[{"subnet":"10.244.3.0/24"}],[{"subnet":"fd00:10:0:3::/64"}]],` +
		`"routes":[{"dst":"10.244.0.0/16"},{"dst":"fd00:10::/56"}],"type":"host-local"},` +
		`"isDefaultGateway":true,"isGateway":true,"mtu":1450,"name":"cbr0","type":"bridge"}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
}

func TestFlannelEnvIncomplete(t *testing.T) {
	for _, text := range []string{
		"", "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_MTU=1450\n",
		"FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.3.1\nFLANNEL_MTU=1450\n",
		"FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.3.1/24\nFLANNEL_MTU=wide\n",
	} {
		if env, err := parseFlannelEnv(text); err == nil {
			t.Errorf("%q: no error, %+v", text, env)
		}
	}
}

// FuzzFlannelEnv: a subnet.env that is taken has what a node needs.
func FuzzFlannelEnv(f *testing.F) {
	f.Add("FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n")
	f.Add("FLANNEL_NETWORK=10.244.0.0/16,\nFLANNEL_MTU=-1\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzed.Within(t)()
		env, err := parseFlannelEnv(text)
		if err != nil {
			return
		}
		if env.mtu <= 0 || len(env.networks) == 0 || len(env.subnets) == 0 || len(env.networks)+len(env.subnets) > strings.Count(text, ",")+strings.Count(text, "\n")+1 {
			t.Errorf("%q was read as %+v", text, env)
		}
		for _, p := range append(env.networks, env.subnets...) {
			if !p.IsValid() {
				t.Errorf("%q has the prefix %v", text, p)
			}
		}
	})
}
