package labkubernetes

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/catalog"
)

// program is what a cluster needs of the machine, and how one gets it.
type program struct{ name, cure string }

const (
	built      = "make cluster-binaries, or name its folder with --bin-dir"
	installing = "apt-get install --no-install-recommends "
)

// programs are those of every cluster.
func programs(kubeProxy string) []program {
	all := []program{
		{"etcd", installing + "etcd-server"},
		{"containerd", installing + "containerd"},
		{"containerd-shim-runc-v2", installing + "containerd"},
		{"ctr", installing + "containerd"},
		{"runc", installing + "runc"},
		{"unshare", installing + "util-linux"},
		{"nsenter", installing + "util-linux"},
		{"kube-apiserver", built}, {"kube-controller-manager", built}, {"kube-scheduler", built}, {"kubelet", built},
	}
	switch kubeProxy {
	case "iptables":
		all = append(all, program{"kube-proxy", built}, program{"iptables", installing + "iptables"}, program{"conntrack", installing + "conntrack"})
	case "nftables":
		all = append(all, program{"kube-proxy", built}, program{"nft", installing + "nftables"}, program{"conntrack", installing + "conntrack"})
	}
	return all
}

// cureOf says how one gets a program that a CNI names.
func cureOf(name string) string {
	switch name {
	case "clang-19", "ipset", "iptables":
		return installing + name
	}
	return built
}

// iptablesKernel is what the program iptables needs of the kernel: nf_tables, or the tables
// of iptables-legacy, to which the program's name is a link then.
func iptablesKernel() netns.Feature {
	path, err := exec.LookPath("iptables")
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err == nil && strings.Contains(filepath.Base(path), "legacy") {
		return netns.IPTables()
	}
	return netns.NFTables()
}

// BinDirs is where programs are looked for before PATH: the folder that the
// user names or else those of CNIBENCH_BIN_DIR or the user's cache, into which
// make cluster-binaries builds.
func BinDirs(flag string) []string {
	if flag != "" {
		return []string{flag}
	}
	dir := os.Getenv("CNIBENCH_BIN_DIR")
	if dir == "" {
		home := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(os.Getenv("HOME"), ".cache"))
		dir = filepath.Join(home, "cnibench", "cluster-binaries")
	}
	return []string{filepath.Join(dir, "bin")}
}

// findPrograms finds every program that the cluster needs; the error names all
// that are missing, each with what gets it.
func (c *Cluster) findPrograms() error {
	var errs []error
	all := programs(c.Spec.KubeProxy)
	for _, name := range c.cni.Programs {
		all = append(all, program{name, cureOf(name)})
	}
	for _, p := range all {
		path, err := c.find(p.name)
		if err != nil {
			errs = append(errs, fmt.Errorf("no program %s in %s or PATH: %s", p.name, strings.Join(c.options.BinDirs, ", "), p.cure))
		}
		c.programs[p.name] = path
	}
	for _, p := range append([]string{"loopback"}, c.cni.Plugins...) {
		if _, err := cni.Find(p, append(c.options.BinDirs, c.options.Lab.CNIPath...)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (c *Cluster) find(name string) (string, error) {
	for _, dir := range c.options.BinDirs {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// linkPlugins makes the one folder of plugins that containerd takes, of links.
func (c *Cluster) linkPlugins() error {
	if err := catalog.LinkOwn(c.Plugins()); err != nil {
		return err
	}
	for _, p := range append([]string{"loopback"}, c.cni.Plugins...) {
		path, err := cni.Find(p, append(c.options.BinDirs, c.options.Lab.CNIPath...))
		if err != nil {
			return err
		}
		if err := os.Symlink(path, filepath.Join(c.Plugins(), p)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}
