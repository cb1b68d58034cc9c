package agent

import "testing"

func TestDevicesOfPodsAreAlike(t *testing.T) {
	for name, want := range map[string]string{
		"veth2710cc18": "veth*", "cali12d4a061371": "cali*", "lxc1f2e3d4c5b6a": "lxc*",
		"eth0": "eth0", "veth0": "veth0", "vethernet": "vethernet", "lo": "lo", "flannel.1": "flannel.1",
	} {
		if got := alike(name); got != want {
			t.Errorf("alike(%q) = %q, want %q", name, got, want)
		}
	}
}
