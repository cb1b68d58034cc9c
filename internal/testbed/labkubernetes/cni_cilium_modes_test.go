package labkubernetes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
)

// TestCiliumModesReport: an agent that reports what its mode must is accepted, and one that
// has fallen back is not, with the field that shows it.
func TestCiliumModesReport(t *testing.T) {
	const status = `{
"cilium": {"state": "Ok"}, "hubble": {"state": "Ok"}, "host-firewall": {"mode": "Disabled"}, "masquerading": {"enabled": true, "mode": "BPF"},
"ipv4-big-tcp": {"enabled": true, "maxGRO": 196608, "maxGSO": 65536},
"kube-proxy-replacement": {"mode": "True", "features": {"nodePort": {"mode": "SNAT"}}},
"routing": {"inter-host-routing-mode": "Native", "intra-host-routing-mode": "BPF", "tunnel-protocol": "vxlan"}}`
	var got map[string]any
	if err := json.Unmarshal([]byte(status), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"native": "", "native+hubble": "",
		"geneve":                "routing.inter-host-routing-mode is Native, want Tunnel; routing.tunnel-protocol is vxlan, want geneve",
		"native+netkit":         "datapath-mode is absent, want netkit",
		"native+wireguard":      "encryption.mode is absent, want Wireguard",
		"native+ipsec":          "encryption.mode is absent, want IPsec; routing.intra-host-routing-mode is BPF, want Legacy",
		"vxlan":                 "routing.inter-host-routing-mode is Native, want Tunnel",
		"native+host-firewall":  "host-firewall.mode is Disabled, want Enabled",
		"native+legacy-routing": "routing.intra-host-routing-mode is BPF, want Legacy",
		"native+pod-lb":         "kube-proxy-replacement.features.bpfSocketLBHostnsOnly is absent, want true",
		"native+dsr":            "kube-proxy-replacement.features.nodePort.mode is SNAT, want DSR",
		"native+bigtcp":         "ipv4-big-tcp.maxGSO is 65536, want 196608",
	}
	for _, m := range ciliumModes() {
		says, known := want[m.name]
		if !known {
			t.Errorf("%s has no line in this test", m.name)
			continue
		}
		err := differences(got, m.reported("none"))
		if (err == nil) != (says == "") || err != nil && err.Error() != "it reports that "+says {
			t.Errorf("%s: %v, want %q", m.name, err, says)
		}
	}
	native := ciliumModes()[0]
	if err := differences(got, native.reported("iptables")); err == nil || !strings.Contains(err.Error(), "routing.intra-host-routing-mode is BPF, want Legacy") {
		t.Errorf("with kube-proxy: %v", err)
	}
}

// TestIPsecKey: each cluster has a key of its own, in the form that agents read, and only root
// can read it.
func TestIPsecKey(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(t.TempDir(), name)
		if err := writeIPsecKey(path); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || !regexp.MustCompile(`^3\+ rfc4106\(gcm\(aes\)\) [0-9a-f]{40} 128\n$`).Match(text) {
			t.Errorf("%q (%v)", text, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v (%v), want mode 0600", info.Mode(), err)
		}
		seen[string(text)] = true
	}
	if len(seen) != 2 {
		t.Error("two clusters have the same key")
	}
}

// TestFallbacks: the lines of a log that show why an agent is in another mode.
func TestFallbacks(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	text := "level=info msg=\"all well\"\nlevel=warn msg=\"cannot \x1b[2J\"\nlevel=info msg=\"Falling back to legacy host routing\"\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := fallbacks(log)
	if strings.Contains(got, "all well") || strings.Contains(got, "\x1b") || !strings.Contains(got, "cannot") || !strings.Contains(got, "Falling back") {
		t.Errorf("%q", got)
	}
	if got := fallbacks(log + "x"); !strings.Contains(got, "no such file") {
		t.Errorf("%q", got)
	}
}

// TestCNIsTakeTheirKubeProxy: a mode in which Cilium carries out services refuses kube-proxy
// before anything is made.
func TestCNIsTakeTheirKubeProxy(t *testing.T) {
	r := exec.NewRunner()
	defer r.Close()
	s := spec()
	s.CNI, s.KubeProxy = "cilium/native+dsr", "nftables"
	dir := filepath.Join(t.TempDir(), "state")
	_, err := Up(t.Context(), options(r, dir), s)
	if err == nil || !strings.Contains(err.Error(), "cilium/native+dsr does not run with --kube-proxy nftables: choose --kube-proxy none") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a folder was made")
	}
}
