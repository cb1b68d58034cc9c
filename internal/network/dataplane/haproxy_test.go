package dataplane

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

func TestParseHAProxyVersion(t *testing.T) {
	got, err := parseHAProxyVersion("HAProxy version 2.6.12-1+deb12u4 2026/05/11 - https://haproxy.org/\nStatus: long-term supported branch\n")
	if err != nil || got != "HAProxy 2.6.12-1+deb12u4" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := parseHAProxyVersion("nginx version: nginx/1.22.1\n"); err == nil {
		t.Error("another program's version was read")
	}
}

// haproxyStat is what HAProxy 2.6 prints of two frontends, without most of its columns.
const haproxyStat = `# pxname,svname,scur,stot,status,req_rate,req_tot,cli_abrt,
port-30080,FRONTEND,1,4,OPEN,0,41,,
port-30081,FRONTEND,0,0,OPEN,0,1,,

`

func TestParseHAProxyRequests(t *testing.T) {
	got, err := parseHAProxyRequests(strings.NewReader(haproxyStat))
	if err != nil || got != 42 {
		t.Errorf("%d, %v", got, err)
	}
	for _, bad := range []string{
		"", "Unknown command: 'show stat'\n", "# pxname,svname\nport-30080,FRONTEND\n",
		"# pxname,req_tot\nport-30080,many\n", "# pxname,req_tot\nport-30080,-1\n", "# pxname,req_tot\nport-30080\n", "# pxname,req_tot\n\"",
	} {
		if got, err := parseHAProxyRequests(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: %d", bad, got)
		}
	}
}

// FuzzHAProxyRequests: no answer at the socket makes the parser panic, and a number comes from
// its column alone.
func FuzzHAProxyRequests(f *testing.F) {
	f.Add(haproxyStat)
	f.Fuzz(func(t *testing.T, printed string) {
		defer fuzzed.Within(t)()
		if got, err := parseHAProxyRequests(strings.NewReader(printed)); err == nil && !strings.Contains(printed, "req_tot") {
			t.Errorf("%d was read from %q", got, printed)
		}
	})
}

// HAProxies are found by their files.
func TestHAProxies(t *testing.T) {
	dir := t.TempDir()
	if all, err := HAProxies(dir); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if (HAProxy{dir, "node"}).Started() {
		t.Error("one without a file is started")
	}
}
