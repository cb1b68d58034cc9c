package ovn

import (
	"context"
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"

	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/network/plugin"
)

// Plugins are the CNI plugins of OVN's networks.
func Plugins() []plugin.Plugin {
	return []plugin.Plugin{{Name: "cnibench-ovn", Funcs: skel.CNIFuncs{Add: ovnAdd, Del: ovnDel, Check: plugin.Check}, Runs: "ovn-controller"}}
}

// ovnConf is the configuration of the plugin cnibench-ovn.
type ovnConf struct {
	OVS        string `json:"ovs"`        // the folder of the node's Open vSwitch
	Northbound string `json:"northbound"` // the socket of the northbound database
	Switch     string `json:"switch"`     // the logical switch of the node's pods
	// PortSecurity: a pod sends from its own addresses only.
	PortSecurity bool `json:"portSecurity"`
	// Group is the port group of the node's pods; "" where there is none.
	Group string `json:"group"`
}

func readOVNConf(args *skel.CmdArgs) (ovnConf, error) {
	var conf ovnConf
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return conf, fmt.Errorf("configuration: %w", err)
	}
	if conf.OVS == "" || conf.Northbound == "" || conf.Switch == "" {
		return conf, errors.New(`configuration: "ovs", "northbound" and "switch" are required`)
	}
	return conf, nil
}

func (c ovnConf) node() (dataplane.OVS, ovn) {
	return dataplane.OVS{Dir: c.OVS}, ovn{dir: filepath.Dir(c.Northbound), ovs: c.OVS}
}

// ovnHostDevice is the host's side of a pod's veth: OVN-Kubernetes names it after the
// container.
func ovnHostDevice(containerID string) string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(containerID)))[:15]
}

// ovnAdd does what two programs of OVN-Kubernetes or Kube-OVN do. ovnkube-master or
// kube-ovn-controller makes a logical port with the pod's addresses. The CNI plugin makes a
// veth, puts it on br-int under the port's name, and waits until ovn-controller has its flows.
func ovnAdd(args *skel.CmdArgs) (err error) {
	own, err := readOVNConf(args)
	if err != nil {
		return err
	}
	conf, result, err := plugin.IPAMAdd(args)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, plugin.IPAMDel(conf, args))
		}
	}()
	ip := result.IPs[0]
	address, _ := netip.AddrFromSlice(ip.Address.IP.To4())
	mac, host, ctx := ovnMAC(address), ovnHostDevice(args.ContainerID), context.Background()
	o, v := own.node()
	if _, err := v.nbctl(ctx, own.logicalPort(args.ContainerID, mac.String()+" "+address.String())...); err != nil {
		return err
	}
	if _, err := plugin.Veth(args, host, conf.MTU, mac); err != nil {
		return err
	}
	if err := o.Checksums(ctx, ovnBridge, plugin.NS(args), args.IfName); err != nil {
		return err
	}
	if _, err := plugin.SubnetSide(args, &ip.Address, ip.Gateway); err != nil {
		return err
	}
	_, err = o.VSCtl(ctx, "--may-exist", "add-port", ovnBridge, host, "--", "set", "Interface", host, "external_ids:iface-id="+args.ContainerID)
	if err != nil {
		return err
	}
	if err := ovnInstalled(ctx, o, host); err != nil {
		return err
	}
	result.IPs[0].Interface = current.Int(1)
	result.Interfaces = []*current.Interface{{Name: host}, {Name: args.IfName, Mac: mac.String(), Sandbox: args.Netns}}
	result.Routes = nil
	return types.PrintResult(result, conf.CNIVersion)
}

// logicalPort is ovn-nbctl's commands for a pod's port. Addresses are "MAC IP". A port group
// loses a port as soon as the port is deleted.
func (c ovnConf) logicalPort(port, addresses string) []string {
	args := []string{"--", "--may-exist", "lsp-add", c.Switch, port, "--", "lsp-set-addresses", port, addresses}
	if c.PortSecurity {
		args = append(args, "--", "lsp-set-port-security", port, addresses)
	}
	if c.Group != "" {
		args = append(args, "--", "--id=@port", "get", "Logical_Switch_Port", port, "--", "add", "Port_Group", c.Group, "ports", "@port")
	}
	return args
}

// ovnDel is no error for a pod that does not exist, or was added in part, nor where the
// switch or the database has ended.
func ovnDel(args *skel.CmdArgs) error {
	own, err := readOVNConf(args)
	if err != nil {
		return err
	}
	o, v := own.node()
	ctx := context.Background()
	_, portErr := o.VSCtl(ctx, "--if-exists", "del-port", ovnBridge, ovnHostDevice(args.ContainerID))
	_, logicalErr := v.nbctl(ctx, "--if-exists", "lsp-del", args.ContainerID)
	if o.Gone(portErr) {
		portErr = nil
	}
	if o.Gone(logicalErr) {
		logicalErr = nil
	}
	return errors.Join(portErr, logicalErr, plugin.Del(args))
}
