package podman

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/flock"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/plugin"
)

// Plugins are the CNI plugins of this program that the networks of this folder name.
func Plugins() []plugin.Plugin {
	return []plugin.Plugin{
		{Name: "cnibench-netavark", Funcs: skel.CNIFuncs{Add: netavarkAdd, Del: netavarkDel, Check: plugin.Check}, Runs: "netavark"},
		{Name: "cnibench-pasta", Funcs: skel.CNIFuncs{Add: pastaAdd, Del: pastaDel, Check: plugin.Check}, Runs: "pasta"},
	}
}

// netavarkConf is the configuration of the plugin cnibench-netavark, which calls
// netavark as Podman does.
type netavarkConf struct {
	types.NetConf
	Driver    string       `json:"driver"`    // of netavark: "bridge", "macvlan"
	Interface string       `json:"interface"` // the bridge, or the device that pods share
	Subnet    netip.Prefix `json:"subnet"`
	Gateway   netip.Addr   `json:"gateway"`
	MTU       int          `json:"mtu"`
	// RunDir is the node's folder: netavark's own files are in it, and the lock of its
	// calls.
	RunDir string `json:"runDir"`
}

// What netavark reads (src/network/types.rs of v1.4.0), as Podman 4 writes it for a
// network without DNS.
type (
	netavarkOptions struct {
		ContainerID   string                     `json:"container_id"`
		ContainerName string                     `json:"container_name"`
		Networks      map[string]netavarkPod     `json:"networks"`
		NetworkInfo   map[string]netavarkNetwork `json:"network_info"`
	}
	netavarkPod struct {
		InterfaceName string       `json:"interface_name"`
		StaticIPs     []netip.Addr `json:"static_ips"`
	}
	netavarkNetwork struct {
		Name             string            `json:"name"`
		ID               string            `json:"id"`
		Driver           string            `json:"driver"`
		NetworkInterface string            `json:"network_interface"`
		Subnets          []netavarkSubnet  `json:"subnets"`
		IPv6Enabled      bool              `json:"ipv6_enabled"`
		Internal         bool              `json:"internal"`
		DNSEnabled       bool              `json:"dns_enabled"`
		IPAMOptions      map[string]string `json:"ipam_options"`
		Options          map[string]string `json:"options"`
	}
	netavarkSubnet struct {
		Subnet  netip.Prefix `json:"subnet"`
		Gateway netip.Addr   `json:"gateway"`
	}
	// netavarkStatus is what it answers, for each network.
	netavarkStatus struct {
		Interfaces map[string]struct {
			MAC     string `json:"mac_address"`
			Subnets []struct {
				Address netip.Prefix `json:"ipnet"`
			} `json:"subnets"`
		} `json:"interfaces"`
	}
)

func netavarkAdd(args *skel.CmdArgs) error {
	conf, err := readNetavarkConf(args)
	if err != nil {
		return err
	}
	return addPod(args, conf.CNIVersion, func(address netip.Prefix) (mac string, made netip.Prefix, err error) {
		out, err := conf.run(args, "setup", address.Addr())
		if err != nil {
			return "", made, err
		}
		var status map[string]netavarkStatus
		if err := json.Unmarshal(out, &status); err != nil {
			return "", made, fmt.Errorf("netavark setup: its answer: %w", err)
		}
		device, ok := status[conf.Name].Interfaces[args.IfName]
		if !ok || len(device.Subnets) != 1 || device.Subnets[0].Address.Addr() != address.Addr() {
			return "", made, fmt.Errorf("netavark setup: it did not make %s with %s: it answered %s", args.IfName, address.Addr(), out)
		}
		return device.MAC, device.Subnets[0].Address, nil
	})
}

// netavarkDel is no error for a pod that is gone, or was added in part.
func netavarkDel(args *skel.CmdArgs) error {
	conf, err := readNetavarkConf(args)
	if err != nil {
		return err
	}
	if err := plugin.IPAMFree(args); err != nil {
		return err
	}
	has, err := podHas(args)
	if err != nil || !has {
		return err
	}
	_, err = conf.run(args, "teardown", conf.added()...)
	return err
}

func readNetavarkConf(args *skel.CmdArgs) (netavarkConf, error) {
	var conf netavarkConf
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return conf, fmt.Errorf("configuration: %w", err)
	}
	if err := version.ParsePrevResult(&conf.NetConf); err != nil {
		return conf, fmt.Errorf("configuration: %w", err)
	}
	if conf.Driver == "" || conf.Interface == "" || conf.RunDir == "" || !conf.Subnet.IsValid() || !conf.Gateway.IsValid() {
		return conf, errors.New(`configuration: "driver", "interface", "subnet", "gateway" and "runDir" are required`)
	}
	return conf, nil
}

// added are the addresses that the pod got by its ADD, where the runtime knows them.
func (c netavarkConf) added() []netip.Addr {
	if c.PrevResult == nil {
		return nil
	}
	got, err := current.NewResultFromResult(c.PrevResult)
	if err != nil {
		return nil
	}
	var all []netip.Addr
	for _, ip := range got.IPs {
		if a, ok := netip.AddrFromSlice(ip.Address.IP); ok {
			all = append(all, a.Unmap())
		}
	}
	return all
}

// podHas reports whether the pod's namespace exists and has the device.
func podHas(args *skel.CmdArgs) (bool, error) {
	if args.Netns == "" {
		return false, nil
	}
	has := false
	err := netns.Do(plugin.NS(args), func() error {
		_, err := netlink.LinkByName(args.IfName)
		var gone netlink.LinkNotFoundError
		if errors.As(err, &gone) {
			return nil
		}
		has = err == nil
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return has, err
}

// netavarkTurn bounds the wait for other calls on the same node: of a hundred pods at
// once, the last one waits for all.
const netavarkTurn = 50 * time.Second

// run calls netavark for the pod. Podman lets one call run at a time too.
func (c netavarkConf) run(args *skel.CmdArgs, verb string, addresses ...netip.Addr) ([]byte, error) {
	path, err := netavarkPath()
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 { // an address is asked for, and not used by a teardown
		addresses = []netip.Addr{c.Gateway}
	}
	input, err := json.Marshal(c.options(args, addresses))
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.RunDir, "netavark")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := flock.Lock(dir, netavarkTurn)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	r := exec.NewRunner()
	defer r.Close()
	got, err := r.Run(context.Background(), exec.Cmd{
		Argv: []string{path, "--config", dir, verb, args.Netns}, Stdin: bytes.NewReader(input),
		CleanEnv: true, Env: []string{"PATH=" + os.Getenv("PATH")},
	})
	if err != nil {
		var said netavarkError
		if json.Unmarshal(got.Stdout, &said) != nil {
			said.Error = ""
		}
		return nil, said.wrap(verb, err)
	}
	return got.Stdout, nil
}

// options are the call's input.
func (c netavarkConf) options(args *skel.CmdArgs, addresses []netip.Addr) netavarkOptions {
	options := map[string]string{"mtu": fmt.Sprint(c.MTU)}
	if c.Driver == "macvlan" {
		options["mode"] = "bridge"
	}
	return netavarkOptions{
		ContainerID: args.ContainerID, ContainerName: args.ContainerID,
		Networks: map[string]netavarkPod{c.Name: {InterfaceName: args.IfName, StaticIPs: addresses}},
		NetworkInfo: map[string]netavarkNetwork{c.Name: {
			// The ID of Podman's default network is the hash of its name.
			Name: c.Name, ID: fmt.Sprintf("%x", sha256.Sum256([]byte(c.Name))),
			Driver: c.Driver, NetworkInterface: c.Interface,
			Subnets:     []netavarkSubnet{{Subnet: c.Subnet, Gateway: c.Gateway}},
			IPAMOptions: map[string]string{"driver": "host-local"}, Options: options,
		}},
	}
}
