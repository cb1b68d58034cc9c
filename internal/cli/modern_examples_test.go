package cli_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// shorter is an example with samples that last next to nothing, and what else is replaced.
func shorter(t *testing.T, path string, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(string(text), replace[i]) {
			t.Fatalf("%s has no %q", path, replace[i])
		}
		text = []byte(strings.Replace(string(text), replace[i], replace[i+1], 1))
	}
	head, _, found := strings.Cut(string(text), "sampling:")
	if !found {
		t.Fatalf("%s has no sampling", path)
	}
	return head + "sampling: {slices: 8, seconds: 0.1, warmup_seconds: 0.02, explain_seconds: 0.1, min_blocks: 2, max_blocks: 2}\n"
}

// runShort runs a campaign with a small --for and gives what was recorded. Every sample is
// measured, or names what this machine lacks.
func runShort(t *testing.T, campaign string) []result.Sample {
	t.Helper()
	s := newSurvivor(t)
	s.write(campaign)
	begin := time.Now()
	run := s.start(s.command("run", s.campaign(), "--out", s.out, "--for", "2s"))
	<-run.ended
	t.Logf("it took %v", time.Since(begin).Round(time.Second))
	if run.err != nil {
		t.Fatalf("%v: %s", run.err, run.Stderr())
	}
	rec, err := result.Read(s.out)
	if err != nil {
		t.Fatal(err)
	}
	lacks := regexp.MustCompile(`^(kernel has no |this machine has no |host has no services)|apt-get install`)
	measured := map[string]bool{}
	for _, sample := range rec.Samples {
		switch sample.Status {
		case result.StatusOK:
			measured[sample.ID] = true
		case result.StatusUnsupported:
			if !lacks.MatchString(sample.Reason) {
				t.Errorf("%s %s: %s", sample.Cell.Network, sample.Cell.Traffic(), sample.Reason)
			}
		}
	}
	for _, sample := range rec.Samples {
		if sample.Status == result.StatusFailed && !measured[sample.ID] {
			t.Errorf("%s %s: %s", sample.Cell.Network, sample.Cell.Traffic(), sample.Reason)
		}
	}
	return rec.Samples
}

// TestEncryptionExample runs examples/encryption.yaml with two networks: each sample is
// verified, or names what this machine lacks.
func TestEncryptionExample(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, sample := range runShort(t, shorter(t, "../../examples/encryption.yaml", "  - calico/direct\n  - cilium/vxlan\n", "")) {
		e := sample.Cell.Encryption
		if sample.Status != result.StatusOK {
			continue
		}
		seen[e] = true
		if (e == "") != (sample.Encryption == nil) || e != "" && sample.Encryption.EncryptedBytes == 0 {
			t.Errorf("%s %s: %+v", sample.Cell.Network, sample.Cell.Traffic(), sample.Encryption)
		}
	}
	if !seen["wireguard-go"] {
		t.Error("wireguard-go was not measured")
	}
}

// TestServicesAtScaleExample runs examples/services-at-scale.yaml with fewer services: each
// record has what a connection's first packet took, and what the set-up of its node took, and
// one service was changed by each proxy.
func TestServicesAtScaleExample(t *testing.T) {
	t.Parallel()
	seen, changed := map[string]bool{}, map[string]bool{}
	for _, sample := range runShort(t, shorter(t, "../../examples/services-at-scale.yaml", "[1, 1000, 10000, 30000]", "[50]")) {
		if sample.Status != result.StatusOK || !sample.Cell.ToService() {
			continue
		}
		if sample.Cell.Workload == result.ServiceUpdateName {
			if sample.Metrics["service_update_mean_seconds"] > 0 {
				changed[sample.Cell.ServiceProxy] = true
			}
			continue
		}
		if sample.Metrics["first_packet_p50_seconds"] <= 0 {
			t.Errorf("%s: no time of a first packet: %v", sample.Cell.Traffic(), sample.Metrics)
		}
		if sample.Probes["client_node"][unit.ServicesSetUpSeconds] > 0 {
			seen[fmt.Sprintf("%s %d", sample.Cell.ServiceProxy, sample.Cell.Services)] = true
		}
	}
	for _, want := range []string{"iptables 50", "nftables 50", "ebpf 50"} {
		if !seen[want] {
			t.Errorf("no record says how long %s took to program: %v", want, seen)
		}
		if proxy, _, _ := strings.Cut(want, " "); !changed[proxy] {
			t.Errorf("no record says how long %s took to change one service", proxy)
		}
	}
}

// TestNodePortExample runs examples/node-port.yaml: each proxy that this kernel has is measured.
func TestNodePortExample(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, sample := range runShort(t, shorter(t, "../../examples/node-port.yaml")) {
		if sample.Cell.ToService() && sample.Status != result.StatusFailed {
			seen[sample.Cell.ServiceProxy+" "+sample.Cell.Workload] = true
		}
	}
	for _, proxy := range []string{"iptables", "nftables", "ebpf", "xdp"} {
		for _, w := range []string{"tcp_rr", "udp_rr", "tcp_crr"} {
			if !seen[proxy+" "+w] {
				t.Errorf("%s by %s was not measured", w, proxy)
			}
		}
	}
}

// TestIngressExample runs examples/ingress.yaml: requests pass its HAProxy, and those by the
// other proxies are measured as well.
func TestIngressExample(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, sample := range runShort(t, shorter(t, "../../examples/ingress.yaml")) {
		if sample.Cell.ToService() && sample.Status == result.StatusOK {
			seen[sample.Cell.ServiceProxy] = true
		}
	}
	for _, proxy := range []string{"iptables", "ebpf", "ingress"} {
		if !seen[proxy] {
			t.Errorf("requests by %s were not measured", proxy)
		}
	}
}

// TestModernExample runs examples/modern.yaml: what this kernel has is measured, and what it
// lacks is named.
func TestModernExample(t *testing.T) {
	t.Parallel()
	labtest.Turn(t, labtest.Studies)
	measured := map[string]bool{}
	for _, sample := range runShort(t, shorter(t, "../../examples/modern.yaml", "  - {name: tcp_crr, message_bytes: [64]}\n", "")) {
		if sample.Status == result.StatusOK {
			measured[sample.Cell.Network] = true
		}
	}
	for _, name := range []string{"host", "bridge", "bridge+bigtcp", "bridge+sidecar", "bridge+node-proxy", "cilium/native", "cilium/native-policy", "calico/ebpf", "flannel/vxlan"} {
		if !measured[name] {
			t.Errorf("%s was not measured", name)
		}
	}
}
