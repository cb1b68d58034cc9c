package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/plugin"
)

// Plugins are the CNI plugins of this program that the networks of this folder name.
func Plugins() []plugin.Plugin {
	return []plugin.Plugin{
		{Name: "cnibench-docker-overlay", Funcs: skel.CNIFuncs{Add: overlayAdd, Del: plugin.Del, Check: plugin.Check}},
		{Name: "cnibench-docker", Funcs: skel.CNIFuncs{Add: add, Del: del, Check: plugin.Check}, Runs: "dockerd"},
	}
}

// dockerConf is the configuration of the plugin cnibench-docker: a pod is a container
// of the node's own Docker.
type dockerConf struct {
	types.NetConf
	Network string `json:"network"` // Docker's name of it
	Dir     string `json:"dir"`     // of the node's dockerd
}

// callLimit bounds what one CNI verb asks of dockerd.
const callLimit = 50 * time.Second

func readDockerConf(args *skel.CmdArgs) (dockerConf, error) {
	var conf dockerConf
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return conf, fmt.Errorf("configuration: %w", err)
	}
	if conf.Network == "" || conf.Dir == "" {
		return conf, errors.New(`configuration: "network" and "dir" are required`)
	}
	return conf, nil
}

// add starts a container in the pod's namespace, where Docker makes the devices.
func add(args *skel.CmdArgs) error {
	conf, err := readDockerConf(args)
	if err != nil {
		return err
	}
	d, err := openDocker(conf.Dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	pod, err := os.Open(args.Netns)
	if err != nil {
		return err
	}
	defer pod.Close()
	// dockerd does not see /run/netns: it has the namespace through this process.
	namespace := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), pod.Fd())
	if err := d.run(ctx, args.ContainerID, conf.Network, namespace); err != nil {
		return errors.Join(err, d.remove(ctx, args.ContainerID))
	}
	result, err := dockerResult(ctx, d, conf, args)
	if err != nil {
		return errors.Join(err, d.remove(ctx, args.ContainerID))
	}
	return types.PrintResult(result, conf.CNIVersion)
}

// dockerResult describes what Docker gave the pod. It looks in the pod's namespace for it:
// a container elsewhere would leave the pod without a network.
func dockerResult(ctx context.Context, d *client, conf dockerConf, args *skel.CmdArgs) (*current.Result, error) {
	e, err := d.endpoint(ctx, args.ContainerID, conf.Network)
	if err != nil {
		return nil, err
	}
	address, err := netip.ParseAddr(e.IPAddress)
	if err != nil {
		return nil, fmt.Errorf("dockerd: address of container %s: %w", args.ContainerID, err)
	}
	subnet := network.IPNet(netip.PrefixFrom(address, e.IPPrefixLen))
	_, err = plugin.OnDevice(args, func(dev netlink.Link) error {
		has, err := netlink.AddrList(dev, netlink.FAMILY_V4)
		if err != nil {
			return err
		}
		for _, a := range has {
			if a.IP.Equal(subnet.IP) {
				return nil
			}
		}
		return fmt.Errorf("device %s does not have the address %s that dockerd names", args.IfName, address)
	})
	if err != nil {
		return nil, err
	}
	return &current.Result{
		CNIVersion: current.ImplementedSpecVersion,
		Interfaces: []*current.Interface{{Name: args.IfName, Sandbox: args.Netns, Mac: e.MacAddress}},
		IPs:        []*current.IPConfig{{Interface: current.Int(0), Address: net.IPNet{IP: subnet.IP, Mask: subnet.Mask}}},
	}, nil
}

// del is no error for a container that does not exist. Where dockerd does not
// run any more its containers do not either, and the lab removes what they had.
func del(args *skel.CmdArgs) error {
	conf, err := readDockerConf(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	d, err := openDocker(conf.Dir)
	if err == nil {
		err = d.remove(ctx, args.ContainerID)
	}
	if errors.Is(err, errNoDocker) {
		return nil
	}
	return err
}
