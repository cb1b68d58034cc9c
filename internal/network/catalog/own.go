package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/cnibench/cnibench/internal/network/antrea"
	"github.com/cnibench/cnibench/internal/network/calico"
	"github.com/cnibench/cnibench/internal/network/cilium"
	"github.com/cnibench/cnibench/internal/network/docker"
	"github.com/cnibench/cnibench/internal/network/flannel"
	"github.com/cnibench/cnibench/internal/network/ovn"
	"github.com/cnibench/cnibench/internal/network/plugin"
	"github.com/cnibench/cnibench/internal/network/podman"
	"github.com/cnibench/cnibench/internal/network/spiderpool"
	"github.com/cnibench/cnibench/internal/network/weave"
)

// RunAsPlugin runs this program as one of the CNI plugins that it provides
// itself, where argv0 names one and the environment holds a CNI_COMMAND, or as one
// of Programs. main calls it before all else; handled reports that it is over,
// with exit as the status.
func RunAsPlugin(argv0 string, env []string) (handled bool, exit int) {
	name := filepath.Base(argv0)
	for _, p := range docker.Programs() {
		if p.Name == name {
			fmt.Fprintln(os.Stderr, p.Run(os.Args))
			return true, 1
		}
	}
	asked := func(kv string) bool { return strings.HasPrefix(kv, "CNI_COMMAND=") && kv != "CNI_COMMAND=" }
	if !slices.ContainsFunc(env, asked) {
		return false, 0
	}
	for _, p := range OwnPlugins() {
		if p.Name != name {
			continue
		}
		err := skel.PluginMainFuncsWithError(p.Funcs, version.All, "CNI plugin "+name+" of cnibench")
		if err == nil {
			return true, 0
		}
		if printErr := err.Print(); printErr != nil {
			fmt.Fprintln(os.Stderr, printErr)
		}
		return true, 1
	}
	return false, 0
}

// OwnPlugins is every CNI plugin that this program provides itself.
func OwnPlugins() []plugin.Plugin {
	return slices.Concat(calico.Plugins(), docker.Plugins(), cilium.Plugins(), flannel.Plugins(), antrea.Plugins(), ovn.Plugins(), weave.Plugins(),
		spiderpool.Plugins(), podman.Plugins())
}

// LinkOwn makes, in a folder of the plugin search path, links under which this
// program runs as its own plugins.
func LinkOwn(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range OwnPlugins() {
		link := filepath.Join(dir, p.Name)
		if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.Symlink(self, link); err != nil {
			return err
		}
	}
	return nil
}
