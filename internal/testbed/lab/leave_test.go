package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

func needLab(t *testing.T) {
	t.Helper()
	labtest.Root(t)
	labtest.Tool(t, "/usr/lib/cni/bridge", "containernetworking-plugins")
	labtest.Tool(t, "nft", "nftables")
	labtest.Tool(t, "iptables-legacy-save", "iptables")
}

// stateDir is a folder for labs' state that does not exist yet, as /run/cnibench
// is not.
func stateDir(t *testing.T) string { return filepath.Join(t.TempDir(), "state") }

func TestCloseLeavesNothing(t *testing.T) {
	needLab(t)
	dir := stateDir(t)
	leavesNothing(t, dir, func() string {
		l := New(options(newRunner(t), dir))
		var all []result.Cell
		for _, n := range catalog.List() {
			all = append(all, supported(n)...)
		}
		unsupported, err := l.Build(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		id := l.ID()
		for _, c := range all {
			if unsupported[c] != "" {
				continue
			}
			if _, err := l.Ends(t.Context(), c); err != nil {
				t.Error(err)
			}
		}
		for range 2 {
			if err := l.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		return id
	})
}

func TestCancelInTheMiddleLeavesNothing(t *testing.T) {
	needLab(t)
	for range 4 {
		after := time.Duration(rand.IntN(400)) * time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			dir := stateDir(t)
			leavesNothing(t, dir, func() string {
				ctx, cancel := context.WithCancelCause(t.Context())
				stopped := errors.New("stopped by the test")
				time.AfterFunc(after, func() { cancel(stopped) })
				l := New(options(newRunner(t), dir))
				_, err := l.Build(ctx, cells("host", "bridge", "flannel/vxlan", "calico/direct", "macvlan"))
				if err != nil && !errors.Is(err, stopped) {
					t.Errorf("error %v, want stopped", err)
				}
				if err == nil { // it was faster
					if err := l.Close(ctx); err != nil {
						t.Error(err)
					}
				}
				return l.ID()
			})
		})
	}
}

func TestReapAfterKill(t *testing.T) {
	needLab(t)
	for _, until := range []string{"building", "building", "building", "building", "built", "agents run"} {
		t.Run(until, func(t *testing.T) {
			dir := stateDir(t)
			leavesNothing(t, dir, func() string {
				killOwner(t, dir, until)
				r := newRunner(t)
				id := ""
				if ids, err := (state.Store{Dir: dir}).IDs(); err != nil || len(ids) > 1 {
					t.Fatalf("labs %v (%v)", ids, err)
				} else if len(ids) == 1 {
					id = ids[0]
				}
				gone, err := Reap(t.Context(), options(r, dir))
				if err != nil {
					t.Error(err)
				}
				for _, g := range gone {
					if g.Detach != nil {
						t.Logf("detach: %v", g.Detach)
					}
					t.Log(g)
				}
				if id != "" && (len(gone) != 1 || gone[0].ID != id) {
					t.Errorf("cleared %v, want %s", gone, id)
				}
				if again, err := Reap(t.Context(), options(r, dir)); err != nil || len(again) > 0 {
					t.Errorf("a second time %v (%v)", again, err)
				}
				return id
			})
		})
	}
}

// killOwner starts the owner of a lab and kills it when it has said a word,
// or, for "building", a random moment later. The lab has the networks, or many where
// none is named.
func killOwner(t *testing.T, dir, until string, networks ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t)
	p, err := r.StartPiped(t.Context(), exec.Cmd{Argv: append([]string{self, "owner", dir}, networks...)})
	if err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(p.Stdout)
	for said.Scan() {
		if strings.HasPrefix(said.Text(), until) {
			break
		}
	}
	if until == "building" {
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
	}
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the owner ended with %v", err)
	}
}

func TestKeptLab(t *testing.T) {
	needLab(t)
	dir := stateDir(t)
	leavesNothing(t, dir, func() string {
		o := options(newRunner(t), dir)
		spec := state.Spec{Network: "bridge", Link: "unshaped", Profile: DefaultProfile, MTU: 1500, Pods: []int{1, 1}}
		host := spec
		host.Network = "host" // its pods are its nodes
		info, err := Up(t.Context(), o, []state.Spec{spec, host})
		if err != nil {
			t.Fatal(err)
		}
		if gone, err := Reap(t.Context(), o); err != nil || len(gone) > 0 {
			t.Errorf("a kept lab was cleared: %v (%v)", gone, err)
		}
		labs, err := List(o)
		if err != nil || len(labs) != 1 || labs[0].ID != info.ID || !labs[0].Kept || labs[0].InUse {
			t.Errorf("list %+v (%v)", labs, err)
		}
		checkExec(t, dir)
		gone, err := Down(t.Context(), o, info.ID)
		if err != nil || gone.Namespaces != 8 {
			t.Errorf("down: %v (%v), want 8 namespaces", gone, err)
		}
		if _, err := Down(t.Context(), o, info.ID); err == nil || !strings.Contains(err.Error(), "there is no lab") {
			t.Errorf("down again: %v", err)
		}
		return info.ID
	})
}

// checkExec finds places by the end of their names.
func checkExec(t *testing.T, dir string) {
	t.Helper()
	o := Options{Dir: dir}
	ns, _, err := findPlace(o, "1-node2-pod1")
	if err != nil || !strings.HasSuffix(ns.Name, "-1-node2-pod1") {
		t.Errorf("place %v (%v)", ns, err)
	}
	for place, want := range map[string]string{"node1": "more than one place", "node9": "there is no place"} {
		if err := Exec(o, place, []string{"true"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("exec %s: %v, want %s", place, err, want)
		}
	}
	if err := Exec(o, "1-node1", []string{"cnb-no-such-program"}); err == nil {
		t.Error("exec of a program that does not exist gives no error")
	}
}

func TestALabInUseIsLeftAlone(t *testing.T) {
	needLab(t)
	o := options(newRunner(t), stateDir(t))
	l := New(o)
	buildLab(t, l, cells("host"))
	for name, clear := range map[string]func(context.Context, Options) ([]Gone, error){"reap": Reap, "down all": DownAll} {
		if gone, err := clear(t.Context(), o); err != nil || len(gone) > 0 {
			t.Errorf("%s cleared %v (%v)", name, gone, err)
		}
	}
	if _, err := Down(t.Context(), o, l.ID()); err == nil || !strings.Contains(err.Error(), "is in use by process") {
		t.Errorf("down: %v", err)
	}
	if _, err := l.Build(t.Context(), cells("bridge")); err == nil {
		t.Error("a second Build gives no error")
	}
}

// conflists of a user's own.
func userNetwork(t *testing.T, lists ...string) network.Network {
	t.Helper()
	var data [][]byte
	for _, l := range lists {
		data = append(data, []byte(l))
	}
	n, err := network.FromConflist("mine", data)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const userBridge = `{"cniVersion":"1.0.0","name":"mine","plugins":[{"type":"bridge","bridge":"mine0","isDefaultGateway":true,
 "ipam":{"type":"host-local","dataDir":"/var/lib/cni/mine","ranges":[[{"subnet":"10.99.%d.0/24"}]]}},
 {"type":"tuning","sysctl":{"net.core.somaxconn":"500"}}]}`

func TestAUsersConflists(t *testing.T) {
	needLab(t)
	dir := stateDir(t)
	leavesNothing(t, dir, func() string {
		o := options(newRunner(t), dir)
		n := userNetwork(t, fmt.Sprintf(userBridge, 1), fmt.Sprintf(userBridge, 2))
		o.Networks = []network.Network{n}
		l := New(o)
		if _, err := l.Build(t.Context(), cells("mine")); err != nil {
			t.Fatal(err)
		}
		for _, c := range cells("mine") {
			reach(t, l, n, c)
		}
		id := l.ID()
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		return id
	})
}

// TestBuildThatFails: each failure is one clear error with a cure, and nothing
// is left.
func TestBuildThatFails(t *testing.T) {
	needLab(t)
	plugins := t.TempDir()
	failing := "#!/bin/sh\n[ \"$CNI_COMMAND\" = VERSION ] && exit 0\n" +
		`echo '{"cniVersion":"1.0.0","code":7,"msg":"the wire is cut","details":"by the test"}'; exit 1` + "\n"
	if err := os.WriteFile(filepath.Join(plugins, "failing"), []byte(failing), 0o755); err != nil {
		t.Fatal(err)
	}
	fault.Plugin(t, plugins, "orphans", fault.Orphans)
	list := func(plugin string) string {
		b, _ := json.Marshal(map[string]any{"cniVersion": "1.0.0", "name": "mine", "plugins": []any{
			map[string]any{"type": "bridge", "ipam": map[string]any{"type": "host-local", "subnet": "10.99.1.0/24"}}, map[string]any{"type": plugin},
		}})
		return string(b)
	}
	for _, c := range []struct{ name, list, want string }{
		{"failing plugin", list("failing"), "CNI plugin failing failed on ADD: the wire is cut: by the test (CNI error code 7)"},
		{"plugin that leaves processes on ADD and DEL", list("orphans"), "CNI plugin orphans failed on ADD: exit status 1"},
		{"missing plugin", list("nonesuch"), `CNI plugin "nonesuch" is not in`},
		{"one conflist, one address twice", fmt.Sprintf(userBridge, 1), "name one conflist per node"},
		{"no addresses", `{"cniVersion":"1.0.0","name":"mine","plugins":[{"type":"bridge"}]}`, `the list needs "ipam"`},
		{"broken list", `{"name":"mine","plugins":[{"type":""}]}`, "missing 'type'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := stateDir(t)
			leavesNothing(t, dir, func() string {
				o := options(newRunner(t), dir)
				o.CNIPath = append([]string{plugins}, cni.UsualDirs()...)
				o.Networks = []network.Network{userNetwork(t, c.list)}
				l := New(o)
				_, err := l.Build(t.Context(), cells("mine", "host"))
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %s", err, c.want)
				}
				if err != nil && strings.Contains(err.Error(), "\n") {
					t.Errorf("more than one error: %v", err)
				}
				return l.ID()
			})
		})
	}
}

func TestMissingDebianPluginNamesThePackage(t *testing.T) {
	needLab(t)
	o := options(newRunner(t), stateDir(t))
	o.CNIPath = []string{t.TempDir()}
	_, err := New(o).Build(t.Context(), cells("macvlan"))
	if err == nil || !strings.Contains(err.Error(), "apt-get install containernetworking-plugins") {
		t.Errorf("error %v, want the package", err)
	}
}

func TestUnsupportedCellsHaveReasons(t *testing.T) {
	base := cells("bridge")[0]
	change := func(f func(*result.Cell)) result.Cell { c := base; f(&c); return c }
	for want, c := range map[string]result.Cell{
		`unknown network "nonesuch"`:           change(func(c *result.Cell) { c.Network = "nonesuch" }),
		`the lab has no link "token-ring"`:     change(func(c *result.Cell) { c.Link = "token-ring" }),
		"the link local has no path between":   change(func(c *result.Cell) { c.Link = "local" }),
		"allow it with --allow-host-tuning":    change(func(c *result.Cell) { c.Profile = "hpc-compute" }),
		"docker/overlay has no IPv6":           change(func(c *result.Cell) { c.Network, c.Family = "docker/overlay", "ipv6" }),
		"bridge has no IPv6 on an MTU of 1279": change(func(c *result.Cell) { c.MTU, c.Family = 1279, "ipv6" }),
		"bridge enforces no policy":            change(func(c *result.Cell) { c.Policies = 10 }),
		"services by iptables have no IPv6": change(func(c *result.Cell) {
			c.Path, c.Services, c.ServiceProxy, c.Family = result.PathPodToClusterIP, 1, "iptables", "ipv6"
		}),
		`the lab has no path "pod-to-service"`:  change(func(c *result.Cell) { c.Path = "pod-to-service" }),
		"cannot be built on an MTU of 100":      change(func(c *result.Cell) { c.MTU = 100 }),
		"a node cannot reach its macvlan pods":  change(func(c *result.Cell) { c.Network, c.Path = "macvlan", result.PathHostToPod }),
		`the lab has no placement "other-rack"`: change(func(c *result.Cell) { c.Placement = "other-rack" }),
	} {
		labtest.Root(t)
		l := New(Options{Dir: stateDir(t)})
		unsupported, err := l.Build(t.Context(), []result.Cell{c})
		if err != nil || !strings.Contains(unsupported[c], want) {
			t.Errorf("%+v: %q (%v), want %q", c, unsupported[c], err, want)
		}
	}
}
