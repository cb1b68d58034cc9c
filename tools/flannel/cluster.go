package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/flannel-io/flannel/pkg/trafficmngr"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
	"github.com/flannel-io/flannel/pkg/trafficmngr/nftables"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Where kube-flannel.yml puts flannel's configuration.
const (
	configNamespace = "kube-flannel"
	configName      = "kube-flannel-cfg"
)

// settings is what the ConfigMap has.
type settings struct {
	netConf  string // the file that net-conf.json was written to
	conflist string // cni-conf.json itself
}

// waitForCluster reads the ConfigMap, once the API server answers and the node has
// its pod subnet: the subnet manager takes a node without one for an error.
func waitForCluster(ctx context.Context, o options) (settings, error) {
	rest, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return settings{}, err
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return settings{}, err
	}
	said := ""
	for {
		s, err := readSettings(ctx, client, o)
		if err == nil {
			return s, nil
		}
		if said != err.Error() {
			said = err.Error()
			klog.Infof("waiting: %v", err)
		}
		select {
		case <-ctx.Done():
			return settings{}, fmt.Errorf("%w (%w)", ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func readSettings(ctx context.Context, client kubernetes.Interface, o options) (settings, error) {
	node, err := client.CoreV1().Nodes().Get(ctx, o.node, metav1.GetOptions{})
	if err != nil {
		return settings{}, err
	}
	if node.Spec.PodCIDR == "" {
		return settings{}, fmt.Errorf("node %s has no podCIDR yet", o.node)
	}
	// The subnet manager panics where there are none; a kubelet always makes some.
	if len(node.Annotations) == 0 {
		return settings{}, fmt.Errorf("the kubelet of node %s has not spoken to the API yet", o.node)
	}
	config, err := client.CoreV1().ConfigMaps(configNamespace).Get(ctx, configName, metav1.GetOptions{})
	if err != nil {
		return settings{}, err
	}
	for _, key := range []string{"net-conf.json", "cni-conf.json"} {
		if config.Data[key] == "" {
			return settings{}, fmt.Errorf("ConfigMap %s/%s has no %s", configNamespace, configName, key)
		}
	}
	path := filepath.Join(o.dir, "net-conf.json")
	return settings{netConf: path, conflist: config.Data["cni-conf.json"]}, writeWhole(path, config.Data["net-conf.json"])
}

// writeWhole makes a file that is never seen half.
func writeWhole(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	half := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.WriteFile(half, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(half, path)
}

func trafficManager(useNFTables bool) trafficmngr.TrafficManager {
	if useNFTables {
		return &nftables.NFTablesManager{}
	}
	return &iptables.IPTablesManager{}
}
