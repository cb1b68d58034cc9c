package podman

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
)

func pastaArgs(dir string) *skel.CmdArgs {
	return &skel.CmdArgs{
		ContainerID: "pod1", Netns: "/run/netns/cnb-pod1", IfName: "eth0",
		StdinData: fmt.Appendf(nil, `{"cniVersion":"1.0.0","name":"pasta","type":"cnibench-pasta","interface":"eth9","gateway":"10.244.1.1","runDir":%q}`, dir),
	}
}

// TestPastaArguments: each pod has two ports of its own, and pasta publishes these alone.
func TestPastaArguments(t *testing.T) {
	args := pastaArgs("/node1")
	conf, err := readPastaConf(args)
	if err != nil {
		t.Fatal(err)
	}
	argv := conf.argv(args, netip.MustParsePrefix("10.244.1.7/24"))
	for _, want := range [][]string{
		{"--interface", "eth9"}, {"--ns-ifname", "eth0"}, {"--address", "10.244.1.7"}, {"--netmask", "24"}, {"--gateway", "10.244.1.1"},
		{"--tcp-ports", "20014-20015"}, {"--udp-ports", "20014-20015"}, {"--pid", "/node1/pasta/pod1.pid"}, {"--netns", "/run/netns/cnb-pod1"},
	} {
		if i := slices.Index(argv, want[0]); i < 0 || argv[i+1] != want[1] {
			t.Errorf("%q: no %q", argv, want)
		}
	}
	seen := map[uint16]bool{}
	for last := range byte(255) {
		port := published(netip.AddrFrom4([4]byte{10, 244, 1, last}))
		if port < 1024 || port+1 >= 32768 || seen[port] || seen[port+1] {
			t.Errorf("pod %d has the ports %d and %d", last, port, port+1)
		}
		seen[port], seen[port+1] = true, true
	}
}

func TestPastaConfiguration(t *testing.T) {
	for _, text := range []string{`{`, `{}`, `{"interface":"eth0","runDir":"/node1","gateway":"fd00::1"}`, `{"interface":"eth0","gateway":"10.244.1.1"}`} {
		if _, err := readPastaConf(&skel.CmdArgs{StdinData: []byte(text)}); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// TestEndsNoOther: a process that has the number of a pasta which ended is left alone, a file
// without a number is an error, and a process that is gone is none.
func TestEndsNoOther(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod1.pid")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(fmt.Sprintln(os.Getpid())) // which would end this test
	if err := endPasta(file, "/run/netns/cnb-pod1"); err != nil {
		t.Error(err)
	}
	if err := endPasta(file, "/run/netns/cnb-pod1"); err != nil {
		t.Errorf("a second time: %v", err)
	}
	for _, text := range []string{"", "pasta", "0", "-1", "1"} {
		write(text)
		if err := endPasta(file, "/run/netns/cnb-pod1"); err == nil {
			t.Errorf("%q is taken for a process", text)
		}
	}
}
