package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/experiments/kubelet"
	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/image"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/testbed/labkubernetes"
)

// Whose nodes a network is counted on, other than the lab's.
const (
	// onKubernetes: those of a lab's Kubernetes, with the network's own agents.
	onKubernetes = "Kubernetes"
	// withKubelet: the lab's, with the rules that a kubelet makes on a node.
	withKubelet = "kubelet's rules"
)

// agents is a network by its own agents, and the lab's models of it.
type agents struct {
	CNI    string // of labkubernetes.CNIs
	Models []string
	// Backports: it needs a newer kernel than Debian's own.
	Backports bool
	// Program is a static cnibench of this machine: it is in the image of the pods.
	Program string
}

// clusterName is the cluster's, and imageVersion the tag of its image.
const clusterName, imageVersion = "real", "instructions"

// carryOut counts between pods of a cluster, then between pods of each model, on nodes of
// the lab and on the same with the rules of the cluster's kubelet.
func (a agents) carryOut(ctx context.Context, p plan) ([]count, error) {
	r := exec.NewRunner()
	defer r.Close()
	real, rules, err := a.counted(ctx, r, p)
	if err != nil {
		return nil, err
	}
	all := real
	for _, model := range a.Models {
		counts, err := a.model(ctx, r, p, model, rules)
		if err != nil {
			return all, fmt.Errorf("%s: %w", model, err)
		}
		all = append(all, counts...)
	}
	return all, nil
}

// model counts a network of the lab, before and after its nodes have a kubelet's rules.
func (a agents) model(ctx context.Context, r *exec.Runner, p plan, name, rules string) ([]count, error) {
	var all []count
	s := setting{Network: name, Traffic: columns()}
	err := s.built(ctx, r, func(l *lab.Lab) error {
		for _, nodes := range []string{"", withKubelet} {
			if nodes == withKubelet {
				if err := load(ctx, r, l, s.Traffic[0].cell(s), rules); err != nil {
					return err
				}
			}
			counts, err := s.counted(p, l)
			for i := range counts {
				counts[i].Network, counts[i].Nodes = name, nodes
			}
			all = append(all, counts...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// load adds rules to both nodes of a cell.
func load(ctx context.Context, r *exec.Runner, l *lab.Lab, cell result.Cell, rules string) error {
	cell.Path = result.PathHostToHost
	nodes, err := l.Sites(cell)
	if err != nil {
		return err
	}
	for _, node := range []netns.NS{nodes.Client, nodes.Server} {
		_, err := r.Run(ctx, exec.Cmd{Argv: []string{"iptables-restore", "--noflush"}, NetNS: node.Path, Stdin: strings.NewReader(rules)})
		if err != nil {
			return err
		}
	}
	return nil
}

// counted counts between pods of a cluster of two nodes, and gives the rules of the first
// node's kubelet. The cluster is frozen while packets are counted.
func (a agents) counted(ctx context.Context, r *exec.Runner, p plan) (counts []count, rules string, err error) {
	o := lab.Options{Runner: r, CNIPath: cni.SearchPath(""), Verb: "bench-instructions"}
	info, err := labkubernetes.Up(ctx, labkubernetes.Options{
		Lab: o, BinDirs: labkubernetes.BinDirs(""), Self: a.Program, Version: imageVersion, Patience: time.Hour,
	}, labkubernetes.Spec{Name: clusterName, CNI: a.CNI, KubeProxy: "none", Link: "unshaped", MTU: 1500, Nodes: 2})
	if err != nil {
		return nil, "", err
	}
	defer func() {
		_, downErr := lab.Down(context.WithoutCancel(ctx), o, info.ID)
		err = errors.Join(err, downErr)
	}()
	api, err := kubeclient.Connect(info.Kubernetes.Kubeconfig, "")
	if err != nil {
		return nil, "", err
	}
	pods := map[string]pod{}
	for name, node := range map[string]string{"client": "node1", "near": "node1", "far": "node2"} {
		if pods[name], err = startPod(ctx, api, info.ID, name, node); err != nil {
			return nil, "", err
		}
	}
	saved, err := r.Run(ctx, exec.Cmd{Argv: []string{"iptables-save"}, NetNS: netns.Named("cnb-" + info.ID + "-1-node1").Path})
	if err != nil {
		return nil, "", err
	}
	if err := lab.SetFrozen(ctx, o, clusterName, true); err != nil {
		return nil, "", err
	}
	counts, err = countAll(p, columns(), func(t traffic) (ends, error) {
		server := pods["far"]
		if t.Placement == result.IntraHost {
			server = pods["near"]
		}
		return ends{Client: pods["client"].ns, Server: server.ns, Address: server.address, Target: server.address}, nil
	})
	for i := range counts {
		counts[i].Network, counts[i].Nodes = a.CNI, onKubernetes
	}
	return counts, kubelet.Chains(string(saved.Stdout), kubelet.Prefix), errors.Join(err, lab.SetFrozen(ctx, o, clusterName, false))
}

// pod is one that runs.
type pod struct {
	ns      netns.NS
	address netip.Addr
}

// podPatience is how long a pod may take to run, by the clock that counts instructions.
const podPatience = 10 * time.Minute

// startPod starts a pod on a node and waits until it runs.
func startPod(ctx context.Context, api *kubeclient.Client, lab, name, node string) (pod, error) {
	type object = map[string]any
	const pods = "/api/v1/namespaces/default/pods"
	ctx, cancel := context.WithTimeout(ctx, podPatience)
	defer cancel()
	err := api.Create(ctx, pods, object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name},
		"spec": object{
			"nodeName": node, "dnsPolicy": "Default",
			"containers": []object{{"name": "agent", "image": image.Name(imageVersion, false), "imagePullPolicy": "Never"}},
		},
	})
	if err != nil {
		return pod{}, err
	}
	var got struct {
		Metadata struct{ UID string }
		Status   struct{ Phase, PodIP string }
	}
	for got.Status.Phase != "Running" {
		if err := api.Get(ctx, pods+"/"+name, &got); err != nil && ctx.Err() != nil {
			return pod{}, fmt.Errorf("the pod %s does not run after %v: %w", name, podPatience, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	address, err := netip.ParseAddr(got.Status.PodIP)
	if err != nil {
		return pod{}, fmt.Errorf("the pod %s has the address %q: %w", name, got.Status.PodIP, err)
	}
	ns, err := namespaceOf(lab, node, got.Metadata.UID)
	return pod{netns.NS{Name: "the pod " + name, Path: ns}, address}, err
}

// namespaceOf is the network namespace of a pod, by a process in one of its cgroups.
func namespaceOf(lab, node, uid string) (string, error) {
	roots, err := netns.CgroupRoots()
	if err != nil {
		return "", err
	}
	for _, root := range roots {
		files, err := filepath.Glob(filepath.Join(root, "cnb-"+lab+"-1-kubernetes", "pods-"+node, "kubepods", "*", "pod"+uid, "*", "cgroup.procs"))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if pids := strings.Fields(string(data)); err == nil && len(pids) > 0 {
				return "/proc/" + pids[0] + "/ns/net", nil
			}
		}
	}
	return "", fmt.Errorf("no process of the pod %s on %s", uid, node)
}
