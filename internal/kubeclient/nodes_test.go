package kubeclient_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/kubeclient/kubetest"
)

func TestNodeAt(t *testing.T) {
	client := kubetest.New("a").Client()
	if name, err := client.NodeAt(t.Context(), netip.MustParseAddr(kubetest.Loopback)); err != nil || name != "a" {
		t.Errorf("%q, %v", name, err)
	}
	if _, err := client.NodeAt(t.Context(), netip.MustParseAddr("192.0.2.1")); err == nil || !strings.Contains(err.Error(), "address 192.0.2.1: a has 127.0.0.1") {
		t.Errorf("%v", err)
	}
}
