// Package labkubernetes brings up a real Kubernetes in a lab's network namespaces:
// etcd and the control plane on one node, containerd and a kubelet on each of
// the others, a pod network and a proxy of services. Each node also has mounts
// of its own, so that programs find their usual folders and the machine keeps
// none of their files.
package labkubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/image"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// Options say with what a Kubernetes is made.
type Options struct {
	// Lab are those of the lab that it is.
	Lab lab.Options
	// BinDirs are searched for programs, in order, before PATH: BinDirs.
	BinDirs []string
	// Self is this program, a static one: it is in the pods' image, and keeps
	// nodes' mounts.
	Self string
	// Version is this program's, the tag of the image.
	Version string
	// Kubeconfig is the file to write; "" is one in the lab's folder.
	Kubeconfig string
	// Patience is how long the start may take; 0: three minutes.
	Patience time.Duration
	// Tools are further files of the pods' image: published tools and what they read.
	Tools []image.File
}

// Spec says what Kubernetes.
type Spec struct {
	Name      string // also of the context
	CNI       string // of CNIs
	KubeProxy string // of KubeProxies
	Link      string // of wire.Links
	MTU       int    // of the link, bytes
	Nodes     int    // without the control plane's
	IPv6      bool   // in addition to IPv4
}

// KubeProxies are the ways of kube-proxy, and to do without it.
func KubeProxies() []string { return []string{"iptables", "nftables", "none"} }

// patience is how long the start may take unless a caller has more.
const patience = 3 * time.Minute

// Up brings a Kubernetes up, which runs until lab.Down. Where it fails nothing
// is left of it, and the error has the end of what the program that failed said.
func Up(ctx context.Context, o Options, spec Spec) (lab.Info, error) {
	within := cmp.Or(o.Patience, patience)
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("the Kubernetes was not up after %s", within))
	defer cancel()
	c, err := newCluster(o, spec)
	if err != nil {
		return lab.Info{}, err
	}
	if err := c.up(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = errors.Join(cause, err)
		}
		err = c.explain(err)
		_, closeErr := c.lab.Close(ctx)
		return lab.Info{}, errors.Join(err, closeErr)
	}
	return c.lab.Keep()
}

// newCluster checks all that can be checked before anything is made.
func newCluster(o Options, spec Spec) (*Cluster, error) {
	cni, err := FindCNI(spec.CNI)
	if err != nil {
		return nil, err
	}
	if err := oneOf("kube-proxy", spec.KubeProxy, KubeProxies()); err != nil {
		return nil, err
	}
	if spec.IPv6 && !cni.IPv6 {
		return nil, fmt.Errorf("%s has no IPv6 in a lab's Kubernetes", cni.Name)
	}
	if cni.KubeProxy != "" && cni.KubeProxy != spec.KubeProxy {
		return nil, fmt.Errorf("%s does not run with --kube-proxy %s: choose --kube-proxy %s", cni.Name, spec.KubeProxy, cni.KubeProxy)
	}
	for _, f := range append(needs(spec), cni.Needs...) {
		if err := f.Probe(); err != nil {
			return nil, err
		}
	}
	c := &Cluster{Spec: spec, options: o, cni: cni, begun: time.Now(), programs: map[string]string{}, kubeconfigs: map[string]string{}}
	if err := c.findPrograms(); err != nil {
		return nil, err
	}
	c.lab, err = lab.Begin(o.Lab, state.Kubernetes{
		Name: spec.Name, CNI: cni.Name, KubeProxy: spec.KubeProxy, Link: spec.Link, MTU: spec.MTU, Nodes: spec.Nodes, IPv6: spec.IPv6,
		Kubeconfig: o.Kubeconfig,
	})
	return c, err
}

// up makes all parts.
func (c *Cluster) up(ctx context.Context) error {
	if err := c.timed("namespaces and wires", func() error { return c.prepare(ctx) }); err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	return c.timed("ready", func() error { return c.waitReady(ctx) })
}

// start starts all programs, at the same time where one does not need the
// other.
func (c *Cluster) start(ctx context.Context) error {
	ready := make(chan struct{}) // the API answers, and knows the nodes
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := c.timed("control plane", func() error { return c.startControlPlane(ctx) }); err != nil {
			return err
		}
		close(ready)
		if c.cni.StartOnce == nil {
			return nil
		}
		return c.timed("CNI's operator", func() error { return c.cni.StartOnce(ctx, c) })
	})
	imageFile := filepath.Join(c.Dir(), "image.tar")
	written := make(chan struct{})
	g.Go(func() error {
		if err := c.timed("image", func() error { return c.writeImage(imageFile) }); err != nil {
			return err
		}
		close(written)
		return nil
	})
	for _, n := range c.nodes {
		g.Go(func() error {
			return c.timed(n.Name, func() error { return c.startWorker(ctx, n, imageFile, written, ready) })
		})
	}
	return g.Wait()
}

func oneOf(what, value string, known []string) error {
	for _, k := range known {
		if k == value {
			return nil
		}
	}
	return fmt.Errorf("unknown %s %q (known: %v)", what, value, known)
}
