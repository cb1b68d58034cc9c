package cni

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/containernetworking/cni/libcni"
	types "github.com/containernetworking/cni/pkg/types/100"

	"github.com/cnibench/cnibench/internal/exec"
)

// Runtime is what stands in for the container runtime.
type Runtime struct {
	Runner *exec.Runner
	// Path is where plugins are searched, in order.
	Path []string
	// CacheDir is where libcni keeps its results, instead of /var/lib/cni.
	CacheDir string
}

// Attachment is one pod's place in a network.
type Attachment struct {
	Conflist *Conflist
	// ContainerID names the pod to plugins.
	ContainerID string
	// PodNS and NodeNS are the files of the pod's and its node's network
	// namespaces; plugins run in the node's.
	PodNS, NodeNS string
	// Device is the name of the pod's device, "eth0".
	Device string
}

// Attached is what an ADD gave.
type Attached struct {
	Addresses []netip.Addr
	Times     []Timing
}

// Add runs CNI ADD. Where it fails, the caller runs Del, as a runtime does.
func (r *Runtime) Add(ctx context.Context, a Attachment) (Attached, error) {
	inv := &invoker{runner: r.Runner, netns: a.NodeNS}
	res, err := r.libcni(inv).AddNetworkList(ctx, a.Conflist.list, a.runtimeConf())
	got := Attached{Times: inv.times}
	if err != nil {
		return got, a.failed(err)
	}
	result, err := types.NewResultFromResult(res)
	if err != nil {
		return got, a.failed(err)
	}
	for _, ip := range result.IPs {
		addr, ok := netip.AddrFromSlice(ip.Address.IP)
		if !ok {
			return got, a.failed(fmt.Errorf("plugin gave the address %q", ip.Address.String()))
		}
		got.Addresses = append(got.Addresses, addr.Unmap())
	}
	if len(got.Addresses) == 0 {
		return got, a.failed(errors.New(`plugins gave the pod no address: the list needs "ipam"`))
	}
	return got, nil
}

// Del runs CNI DEL. One for a pod that was never added, or added in part, is
// no error for plugins that keep to the specification.
func (r *Runtime) Del(ctx context.Context, a Attachment) ([]Timing, error) {
	inv := &invoker{runner: r.Runner, netns: a.NodeNS}
	if err := r.libcni(inv).DelNetworkList(ctx, a.Conflist.list, a.runtimeConf()); err != nil {
		return inv.times, a.failed(err)
	}
	return inv.times, nil
}

func (r *Runtime) libcni(inv *invoker) *libcni.CNIConfig {
	return libcni.NewCNIConfigWithCacheDir(r.Path, r.CacheDir, inv)
}

func (a Attachment) runtimeConf() *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: a.ContainerID, NetNS: a.PodNS, IfName: a.Device}
}

// failed names pod and list; libcni's own wrapping says what our errors
// already say.
func (a Attachment) failed(err error) error {
	var plugin *PluginError
	var missing *MissingPluginError
	switch {
	case errors.As(err, &plugin):
		err = plugin
	case errors.As(err, &missing):
		err = missing
	}
	return fmt.Errorf("pod %s, conflist %s: %w", a.ContainerID, a.Conflist.Name(), err)
}
