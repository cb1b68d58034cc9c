// Command cnibench-flanneld is flannel's agent for `cnibench lab up --kubernetes`:
// flannel's own backends, subnet manager and rules, under a main of ours, because a
// module that flannel's main needs is in no Go proxy. It does what flanneld does
// when kube-flannel.yml starts it (--ip-masq --kube-subnet-mgr), except that it reads
// the ConfigMap kube-flannel-cfg by the API instead of from a volume.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/hostgw"    // registers itself
	_ "github.com/flannel-io/flannel/pkg/backend/ipip"      // registers itself
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"     // registers itself
	_ "github.com/flannel-io/flannel/pkg/backend/wireguard" // registers itself
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"k8s.io/klog/v2"
)

// resyncSeconds is flanneld's default of --iptables-resync.
const resyncSeconds = 5

type options struct {
	kubeconfig, node, device, dir, subnetFile, conflist string
}

func main() {
	klog.InitFlags(nil)
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig to reach the API server with")
	flag.StringVar(&o.node, "node", "", "name of the node that this is")
	flag.StringVar(&o.device, "iface", "", "device that reaches the other nodes")
	flag.StringVar(&o.dir, "dir", "/run/flannel", "folder for net-conf.json")
	flag.StringVar(&o.subnetFile, "subnet-file", "/run/flannel/subnet.env", "file for the CNI plugin, written when the backend is up")
	flag.StringVar(&o.conflist, "cni-conf", "", "file for the ConfigMap's cni-conf.json, written last")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "cnibench-flanneld:", err)
		os.Exit(1)
	}
}

// run works until ctx ends. Devices, routes and rules stay, as flanneld leaves them.
func run(ctx context.Context, o options) error {
	if o.node == "" || o.device == "" || o.conflist == "" {
		return errors.New("--node, --iface and --cni-conf are needed")
	}
	settings, err := waitForCluster(ctx, o)
	if err != nil {
		return err
	}
	// The subnet manager asks the environment who it is.
	if err := os.Setenv("NODE_NAME", o.node); err != nil {
		return err
	}
	manager, err := kube.NewSubnetManager(ctx, "", o.kubeconfig, "flannel.alpha.coreos.com", settings.netConf, true)
	if err != nil {
		return err
	}
	config, err := manager.GetNetworkConfig(ctx)
	if err != nil {
		return err
	}
	network, wg, err := register(ctx, o, manager, config)
	if err != nil {
		return err
	}
	if err := protect(ctx, o, config, network); err != nil {
		return err
	}
	lease := network.Lease()
	if err := manager.HandleSubnetFile(o.subnetFile, config, true, lease.Subnet, lease.IPv6Subnet, network.MTU()); err != nil {
		return fmt.Errorf("write %s: %w", o.subnetFile, err)
	}
	wg.Add(1)
	go func() {
		network.Run(ctx)
		wg.Done()
	}()
	if err := manager.CompleteLease(ctx, lease, wg); err != nil {
		return err
	}
	if err := writeWhole(o.conflist, settings.conflist); err != nil {
		return err
	}
	<-ctx.Done()
	return waitFor(wg)
}

// register starts the backend that the ConfigMap names.
func register(ctx context.Context, o options, manager subnet.Manager, config *subnet.Config) (backend.Network, *sync.WaitGroup, error) {
	stack, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return nil, nil, err
	}
	device, err := ipmatch.LookupExtIface(o.device, "", "", stack, ipmatch.PublicIPOpts{})
	if err != nil {
		return nil, nil, err
	}
	b, err := backend.NewManager(ctx, manager, device).GetBackend(config.BackendType)
	if err != nil {
		return nil, nil, err
	}
	wg := new(sync.WaitGroup)
	network, err := b.RegisterNetwork(ctx, wg, config)
	return network, wg, err
}

// protect makes flanneld's masquerade and forward rules, and keeps them.
func protect(ctx context.Context, o options, config *subnet.Config, network backend.Network) error {
	rules := trafficManager(config.EnableNFTables)
	if err := rules.Init(ctx); err != nil {
		return err
	}
	// What flanneld reads of a subnet file of its last life; there was none.
	none4, none6 := ip.IP4Net{}, ip.IP6Net{IP: ip.MustParseIP6("::")}
	err := rules.SetupAndEnsureMasqRules(ctx, config.Network, none4, none4, config.IPv6Network, none6, none6,
		network.Lease(), resyncSeconds, false)
	if err != nil {
		return fmt.Errorf("masquerade rules: %w", err)
	}
	rules.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, resyncSeconds)
	return nil
}

// waitFor gives what was started two seconds to end.
func waitFor(wg *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(2 * time.Second):
		return errors.New("the backend did not end within 2 s")
	}
}
