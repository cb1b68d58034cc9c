package lab

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/onwire"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/encryption"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
	"github.com/cnibench/cnibench/internal/traffic"
)

// encryptedCell is a pod-to-pod cell between nodes on a link with an MTU of 1500 bytes, and
// the MTU that its pods must have.
type encryptedCell struct {
	method, network, family string
	podMTU                  int
}

func (e encryptedCell) cell() result.Cell {
	c := cells(e.network)[0]
	c.Encryption, c.Family = e.method, e.family
	return c
}

// TestEncryption: pods reach each other with packets of full size, only encrypted packets are
// on the wire, the counters of a sample account for what it moved, and plain packets on the
// wire fail it.
func TestEncryption(t *testing.T) {
	for _, e := range []encryptedCell{
		{result.EncryptionWireGuardGo, "flannel/vxlan", "", 1500 - 60 - 50},
		{result.EncryptionWireGuardGo, "flannel/vxlan", familyIPv6, 1500 - 80 - 70},
		{result.EncryptionWireGuardGo, "calico/direct", "", 1500 - 60},
		{result.EncryptionWireGuardGo, "flannel/udp", "", 1500 - 60 - 28},
		{result.EncryptionWireGuardGo, "cilium/vxlan", "", 1500 - 60 - 50},
		{result.EncryptionWireGuard, "flannel/vxlan", "", 1500 - 60 - 50},
		{result.EncryptionIPsec, "flannel/vxlan", "", 1466 - 50},
		{result.EncryptionIPsec, "flannel/vxlan", familyIPv6, 1466 - 70},
	} {
		t.Run(e.method+"/"+e.network+e.family, func(t *testing.T) {
			t.Parallel()
			needLab(t)
			l := New(options(newRunner(t), stateDir(t)))
			cell := e.cell()
			buildLab(t, l, []result.Cell{cell})
			c := l.clusters[keyOf(cell)]
			onlyEncrypted(t, l, c, e)
			accounted(t, l, cell)
			plainFails(t, l, c, cell)
		})
	}
}

// onlyEncrypted looks at what is on the wire while pods send packets of all sizes.
func onlyEncrypted(t *testing.T, l *Lab, c *cluster, e encryptedCell) {
	t.Helper()
	from, to := site{1, 1}, site{2, 1}
	headers := 28
	if e.family == familyIPv6 {
		headers = 48
	}
	mtu, err := netns.MTUTo(c.ns(from), c.addressOf(to, e.family))
	if err != nil || mtu != e.podMTU {
		t.Errorf("the pods' MTU is %d (%v), want %d", mtu, err, e.podMTU)
	}
	w := onwire.NewWatch(t, l.state.Fabric(c.index))
	server := echo(t, c.ns(to), c.addressOf(to, e.family))
	for _, payload := range []int{1, mtu - headers} {
		if err := ask(c.ns(from), server, payload); err != nil {
			t.Errorf("%d bytes: %v", payload, err)
		}
	}
	encrypted := map[bool]int{}
	for _, f := range w.Seen() {
		sealed := f.Tunnel == "wireguard"
		if e.method == result.EncryptionIPsec {
			sealed = f.Tunnel == "esp"
		}
		switch {
		case f.Destination.IsMulticast():
		case f.Fragmented || f.Bytes > 1500+14:
			t.Errorf("a fragment, or a frame larger than the link: %+v", f)
		case !sealed:
			t.Errorf("a plain packet is on the wire: %+v", f)
		default:
			encrypted[f.Destination.As16()[15] == 2]++
		}
	}
	if encrypted[true] < 2 || encrypted[false] < 2 {
		t.Errorf("%v encrypted packets on the wire, want at least 2 in each direction", encrypted)
	}
}

// accounted verifies samples of streams and of round trips. In the virtual machine, where
// the engine's schedule would depend on the emulation's speed, it is datagrams and answers.
func accounted(t *testing.T, l *Lab, cell result.Cell) {
	t.Helper()
	workloads := []string{traffic.TCPStream, traffic.UDPStream, traffic.TCPRR}
	if labtest.InVM() {
		workloads = []string{traffic.UDPRR}
	}
	c, to := l.clusters[keyOf(cell)], site{2, 1}
	for _, workload := range workloads {
		sample := cell
		sample.Workload = workload
		verify := l.WatchEncryption(t.Context(), sample)
		if labtest.InVM() {
			server := echo(t, c.ns(to), c.addressOf(to, cell.Family))
			for range 20 {
				if err := ask(c.ns(site{1, 1}), server, 1000); err != nil {
					t.Error(err)
				}
			}
		} else {
			transmit(t, l, sample, workload)
		}
		got, err := verify()
		if err != nil {
			t.Errorf("%s: %v", workload, err)
			continue
		}
		if got.EncryptedBytes < 1000 || got.Algorithm == "" || !strings.ContainsAny(got.Implementation, " ") && !strings.HasPrefix(got.Implementation, "wireguard-go") {
			t.Errorf("%s: %+v", workload, got)
		}
	}
}

// plainFails puts packets on the wire that nothing encrypts.
func plainFails(t *testing.T, l *Lab, c *cluster, cell result.Cell) {
	t.Helper()
	to := c.encryption.Wire(c.nodes[1], cell.MTU).Address
	if cell.Encryption == result.EncryptionIPsec {
		labtest.Tool(t, "ip", "iproute2")
		flush := exec.Cmd{Argv: []string{"ip", "xfrm", "policy", "flush"}, NetNS: c.nodes[0].NS.Path}
		if _, err := newRunner(t).Run(t.Context(), flush); err != nil {
			t.Fatal(err)
		}
	}
	verify := l.WatchEncryption(t.Context(), cell)
	datagrams(t, c.nodes[0].NS, netip.AddrPortFrom(to.Addr(), 9))
	got, err := verify()
	if err == nil || !strings.HasPrefix(err.Error(), "not encrypted: ") {
		t.Errorf("with plain packets on the wire: %+v, %v", got, err)
	}
}

// datagrams sends three of 1,200 bytes.
func datagrams(t *testing.T, ns netns.NS, to netip.AddrPort) {
	t.Helper()
	err := netns.Do(ns, func() error {
		conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		if err != nil {
			return err
		}
		defer conn.Close()
		for range 3 {
			_, err = conn.Write(make([]byte, 1200)) // the second may hear that nobody listens
		}
		if strings.Contains(fmt.Sprint(err), "refused") {
			err = nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestKeptLabIsEncrypted: nodes of a lab that stays send each other no plain packet, and what
// cannot be encrypted is refused before anything is made.
func TestKeptLabIsEncrypted(t *testing.T) {
	needLab(t)
	labtest.Feature(t, "tun", netns.TUN().Probe())
	labtest.Feature(t, "vxlan", netns.VXLAN().Probe())
	o := options(newRunner(t), stateDir(t))
	spec := state.Spec{Network: "bridge", Link: "unshaped", Profile: DefaultProfile, MTU: 1500, Pods: []int{1, 1}, Encryption: result.EncryptionIPsec}
	if _, err := Up(t.Context(), o, []state.Spec{spec}); err == nil || !strings.Contains(err.Error(), "bridge cannot have encryption by ipsec") {
		t.Errorf("bridge with IPsec: %v", err)
	}
	spec.Network, spec.Encryption = "flannel/vxlan", result.EncryptionWireGuardGo
	info, err := Up(t.Context(), o, []state.Spec{spec})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := Down(context.WithoutCancel(t.Context()), o, info.ID); err != nil {
			t.Error(err)
		}
	}()
	places := map[string]netns.NS{}
	for _, p := range info.Places {
		places[strings.TrimPrefix(p.Namespace, "cnb-"+info.ID+"-1-")] = netns.Named(p.Namespace)
	}
	addresses, err := netns.Addresses(places["node2-pod1"])
	if err != nil || len(addresses) == 0 {
		t.Fatalf("addresses of a pod: %v (%v)", addresses, err)
	}
	at, err := netip.ParsePrefix(addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	w := onwire.NewWatch(t, places["fabric"])
	if err := ask(places["node1-pod1"], echo(t, places["node2-pod1"], at.Addr()), 1300); err != nil {
		t.Error(err)
	}
	frames := w.Seen()
	for _, f := range frames {
		if f.Tunnel != "wireguard" && !f.Destination.IsMulticast() {
			t.Errorf("a plain packet is on the wire: %+v", f)
		}
	}
	if len(frames) < 2 {
		t.Errorf("%d packets on the wire", len(frames))
	}
}

// TestEncryptionKeysAreNowhere: no argument of a process, no environment and no file of the
// lab has a key. wireguard-go ends with the lab.
func TestEncryptionKeysAreNowhere(t *testing.T) {
	needLab(t)
	dir := stateDir(t)
	l := New(options(newRunner(t), dir))
	cell := encryptedCell{method: result.EncryptionWireGuardGo, network: "flannel/vxlan"}.cell()
	buildLab(t, l, []result.Cell{cell})
	c := l.clusters[keyOf(cell)]
	key := regexp.MustCompile(`private_key|(^|[^0-9a-f])[0-9a-f]{64}([^0-9a-f]|$)|(^|[^A-Za-z0-9+/])[A-Za-z0-9+/]{43}=([^=]|$)`)
	look := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		if found := key.Find(text); found != nil {
			t.Errorf("%s has a key", path)
		}
	}
	var carriers []int
	for i, pids := range c.carriers {
		if len(pids) != 1 {
			t.Fatalf("node %d has the carriers %v, want wireguard-go", i+1, pids)
		}
		carriers = append(carriers, pids...)
		look(filepath.Join("/proc", strconv.Itoa(pids[0]), "cmdline"))
		look(filepath.Join("/proc", strconv.Itoa(pids[0]), "environ"))
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			look(path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, pid := range carriers {
		if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid))); err == nil {
			t.Errorf("wireguard-go, process %d, is still there after the lab", pid)
		}
	}
}

// TestUnsupportedEncryption: what cannot be encrypted has its reason before anything is built.
func TestUnsupportedEncryption(t *testing.T) {
	labtest.Root(t)
	base := encryptedCell{method: result.EncryptionWireGuardGo, network: "bridge"}.cell()
	change := func(f func(*result.Cell)) result.Cell { c := base; f(&c); return c }
	for want, c := range map[string]result.Cell{
		"bridge cannot have encryption by ipsec: it encrypts packets between the nodes' own addresses": change(func(c *result.Cell) { c.Encryption = result.EncryptionIPsec }),
		"macvlan cannot have encryption by wireguard-go: its pods are on the link themselves":          change(func(c *result.Cell) { c.Network = "macvlan" }),
		"calico/ebpf cannot have encryption by wireguard-go: its eBPF programs take Ethernet frames":   change(func(c *result.Cell) { c.Network = "calico/ebpf" }),
		"both ends are on one":       change(func(c *result.Cell) { c.Placement = result.IntraHost }),
		"595 are left for packets":   change(func(c *result.Cell) { c.Network, c.MTU = "flannel/vxlan", 655 }),
		`unknown encryption "rot13"`: change(func(c *result.Cell) { c.Encryption = "rot13" }),
		"pod_setup sends nothing":    change(func(c *result.Cell) { c.Workload = result.PodSetupName }),
		"1340 are left for packets":  change(func(c *result.Cell) { c.Network, c.Family, c.MTU = "flannel/vxlan", familyIPv6, 1420 }),
	} {
		l := New(Options{Dir: stateDir(t)})
		for _, m := range []string{result.EncryptionWireGuardGo, result.EncryptionIPsec} {
			if method, err := encryption.Find(m); err == nil {
				for _, f := range method.Needs(true) {
					l.planner.features[f.Name] = nil // another reason comes first
				}
			}
		}
		unsupported, err := l.Build(t.Context(), []result.Cell{c})
		if err != nil || !strings.Contains(unsupported[c], want) {
			t.Errorf("%+v: %q (%v), want %q", c, unsupported[c], err, want)
		}
	}
	for feature, method := range map[string]string{"wireguard": result.EncryptionWireGuard, "ESP": result.EncryptionIPsec, "tun": result.EncryptionWireGuardGo} {
		l := New(Options{Dir: stateDir(t)})
		l.planner.features[feature] = &netns.MissingError{Feature: feature, Err: unix.EOPNOTSUPP}
		c := encryptedCell{method: method, network: "flannel/vxlan"}.cell()
		if _, _, err := l.planner.support(c); err == nil || err.Error() != "kernel has no "+feature {
			t.Errorf("%s without %s: %v", method, feature, err)
		}
	}
}
