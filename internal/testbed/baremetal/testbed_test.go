package baremetal

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
	"github.com/cnibench/cnibench/internal/result"
)

// list is what ansible-inventory --list prints.
const list = `{"_meta": {"hostvars": {
	"left": {"ansible_host": "192.0.2.11", "ansible_port": 2222, "ansible_user": "root", "ansible_become": true},
	"right": {"ansible_host": "192.0.2.12", "cnibench_address": "10.0.0.12", "cnibench_dir": "/srv/bench", "cnibench_device": "eth1"},
	"archive": {"cnibench_sink_dir": "/srv/results"}, "head": {"cnibench_kubeconfig": "/root/config"}}},
	"all": {"children": ["ungrouped", "client", "server", "sink"]},
	"client": {"hosts": ["left"]}, "server": {"hosts": ["right"]}, "sink": {"hosts": ["archive"]}, "control_plane": {"hosts": ["head"]}}`

func TestInventory(t *testing.T) {
	inv := Inventory{Path: "hosts.yml"}
	if err := inv.parse([]byte(list)); err != nil {
		t.Fatal(err)
	}
	left := Host{Name: "left", Address: "192.0.2.11", Port: "2222", User: "root", Become: true, Data: "192.0.2.11", Dir: defaultDir, Kubeconfig: defaultKubeconfig}
	right := Host{Name: "right", Address: "192.0.2.12", Data: "10.0.0.12", Dir: "/srv/bench", Device: "eth1", Kubeconfig: defaultKubeconfig}
	if inv.Client != left || inv.Server != right || inv.Sink == nil || inv.Sink.SinkDir != "/srv/results" || inv.ControlPlane == nil || inv.ControlPlane.Kubeconfig != "/root/config" {
		t.Errorf("%+v", inv)
	}
	if a, err := right.dataAddress(t.Context()); err != nil || a.String() != "10.0.0.12" {
		t.Errorf("%v, %v", a, err)
	}
	argv := left.ssh("echo", "a b").Argv
	for _, want := range []string{"BatchMode=yes", "StrictHostKeyChecking=yes", "2222", "root"} {
		if !slices.Contains(argv, want) {
			t.Errorf("no %s in %q", want, argv)
		}
	}
	if last := argv[len(argv)-1]; last != "sudo -n -- echo 'a b'" {
		t.Errorf("the far shell gets %q", last)
	}
}

func TestInventoryRefuses(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"two clients":         {`"client": {"hosts": ["left"]}`, `"client": {"hosts": ["left", "right"]}`, "client has 2 hosts, want one"},
		"two control planes":  {`"hosts": ["head"]`, `"hosts": ["head", "left"]`, "control_plane has 2 hosts, want one"},
		"no server":           {`"server": {"hosts": ["right"]}`, `"x": {}`, "server has 0 hosts"},
		"one host for both":   {`"server": {"hosts": ["right"]}`, `"server": {"hosts": ["left"]}`, "name two"},
		"a password":          {`"ansible_user": "root"`, `"ansible_password": "secret"`, "use a key"},
		"a template":          {`"root"`, `"{{ me }}"`, "template"},
		"a strange device":    {`"eth1"`, `"eth1; id"`, "no device has such a name"},
		"a system's folder":   {`"/srv/bench"`, `"/opt"`, "want a folder of its own"},
		"a system's tree":     {`"/srv/bench"`, `"/usr/local/bench"`, "want a folder of its own"},
		"by another way":      {`"/srv/bench"`, `"/srv/../opt/"`, "want a folder of its own"},
		"somebody's home":     {`"/srv/bench"`, `"/home/alice"`, "want a folder of its own"},
		"the root folder":     {`"/srv/bench"`, `"/"`, "cnibench_dir"},
		"a sink without room": {`{"cnibench_sink_dir": "/srv/results"}`, `{}`, "cnibench_sink_dir"},
		"no JSON":             {`{"_meta"`, `_meta`, "ansible-inventory's output"},
	} {
		text := strings.Replace(list, c.from, c.to, 1)
		if text == list {
			t.Fatalf("%s: nothing to replace", name)
		}
		inv := Inventory{Path: "hosts.yml"}
		err := inv.parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func FuzzInventory(f *testing.F) {
	f.Add([]byte(list))
	f.Add([]byte(`{"client": {"hosts": [null]}, "server": 1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzzed.Within(t)()
		inv := Inventory{}
		if err := inv.parse(text); err == nil && (inv.Client.Name == inv.Server.Name) {
			t.Errorf("taken: %q", text)
		}
	})
}

func TestSupport(t *testing.T) {
	b := &Testbed{ends: [2]*end{
		{host: Host{Name: "left"}, facts: facts{device: "eth0", deviceMbps: 1000}},
		{host: Host{Name: "right"}, facts: facts{device: "eth1"}},
	}}
	good := result.Cell{Network: "host", Path: "host-to-host", Placement: "inter-host", Link: "unshaped", Profile: "default_settings", MTU: 1500}
	change := func(f func(*result.Cell)) result.Cell { c := good; f(&c); return c }
	for _, c := range []struct {
		cell result.Cell
		want string
	}{
		{good, ""},
		{change(func(c *result.Cell) { c.Network = "bridge" }), "no pod network bridge"},
		{change(func(c *result.Cell) { c.Network = "detected" }), "no group control_plane"},
		{change(func(c *result.Cell) { c.Workload, c.Ranks = "all_to_all", 8 }), "all_to_all has 8 ranks, and an inventory has two hosts that are measured: measure it in the lab"},
		{change(func(c *result.Cell) { c.Placement = "intra-host" }), "two machines"},
		{change(func(c *result.Cell) { c.Family = "ipv6" }), "IPv4"},
		{change(func(c *result.Cell) { c.Link = "10-gigabit" }), "left runs at 1000 Mbit/s"},
		{change(func(c *result.Cell) { c.Link = "1-gigabit" }), "right does not tell its speed"},
	} {
		err := b.support(c.cell)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cell, err, c.want)
		}
	}
}

func TestPlainName(t *testing.T) {
	for name, want := range map[string]string{
		"sysctl net.ipv4.tcp_sack": "net.ipv4.tcp_sack", "offload eth0 gro": "offload gro", "ring eth0 rx": "ring rx",
		"mtu eth0": "mtu", "tuned": "tuned", "file /sys/x": "/sys/x", "": "",
	} {
		if got := plainName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestFailures(t *testing.T) {
	records, rest := parseRecords([]byte(`{"event": "ok", "host": "a", "task": "t"}
[WARNING]: something
{"event": "unreachable", "host": "a", "task": "t", "msg": "Failed to connect: Permission denied (publickey)."}
{"event": "failed", "host": "b", "task": "t", "msg": "MODULE FAILURE", "module_stderr": "Traceback\nIndexError: x\n"}
{"event": "failed", "host": "c", "task": "t", "msg": "fine", "ignored": true}
`))
	if len(records) != 4 || rest != "[WARNING]: something" {
		t.Errorf("%d records, %q", len(records), rest)
	}
	got := failures(records).Error()
	want := "a: cannot be reached: Failed to connect: Permission denied (publickey). (the key is not accepted there: name another in ansible_ssh_private_key_file, or add it to authorized_keys)\nb: t: MODULE FAILURE: IndexError: x"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
