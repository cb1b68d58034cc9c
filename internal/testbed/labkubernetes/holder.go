package labkubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// readyFile is made by the holder in its folder when all mounts exist.
const readyFile = "mounts-are-ready"

// hold starts the process that keeps the node's mounts.
func (c *Cluster) hold(ctx context.Context, n *Node) error {
	if err := os.MkdirAll(filepath.Join(n.Dir, "tmp"), 0o755); err != nil {
		return err
	}
	if n.Conf != "" {
		if err := os.MkdirAll(n.Conf, 0o755); err != nil {
			return err
		}
	}
	p, err := c.launch(n, state.Holder, exec.Cmd{Argv: []string{
		"unshare", "--mount", "--propagation", "private", c.options.Self, "lab", "hold", c.Dir(), n.Dir,
	}})
	if err != nil {
		return err
	}
	n.holder = p.PID
	return c.wait(ctx, "the mounts of "+n.Name, func() error {
		_, err := os.Stat(filepath.Join(n.Dir, readyFile))
		return err
	})
}

// Hold is the holder of a node. It is started in a mount namespace of its own,
// gives it what a node needs and waits until it is killed. labDir and nodeDir
// are the folders of the lab and the node in it; they stay what they are.
//
// What the node's programs write into /etc, /opt and /var goes to memory, and
// /run is empty: all of it ends with the namespace, however that ends.
func Hold(ctx context.Context, labDir, nodeDir string) error {
	if err := mounts(labDir, filepath.Join(nodeDir, "tmp")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(nodeDir, readyFile), nil, 0o644); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func mounts(labDir, tmp string) error {
	if err := netns.PrivateFiles(labDir, tmp); err != nil {
		return err
	}
	for _, dir := range []string{"/run/netns", "/run/lock", "/var/log/pods", "/var/lib/cni"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := mountBPF(); err != nil {
		return err
	}
	return keepMachine(tmp)
}

// mountBPF gives the node a BPF file system of its own, where the kernel has them. systemd
// mounts one on every machine, and Cilium's agent ends where it finds two at one place.
func mountBPF() error {
	const path = "/sys/fs/bpf"
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	for {
		err := unix.Unmount(path, unix.MNT_DETACH)
		if errors.Is(err, unix.EINVAL) { // nothing is mounted there
			break
		}
		if err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	return netns.Mount("bpffs", path, "bpf", 0, "")
}

// keepMachine keeps the settings of the whole machine from the node's programs:
// kubelets and agents of CNIs set some when they start. They cannot be written,
// and those on which a kubelet insists read as it wants them. What is below net
// is the node's own.
func keepMachine(tmp string) error {
	for _, dir := range []string{"kernel", "vm", "fs"} {
		path := filepath.Join("/proc/sys", dir)
		if err := netns.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		if err := netns.Mount(path, path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			return err
		}
	}
	for name, value := range kubeletTunables() {
		fake := filepath.Join(tmp, strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(fake, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := netns.Mount(fake, filepath.Join("/proc/sys", name), "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

// kubeletTunables are what a kubelet sets or wants (pkg/kubelet/cm,
// setupKernelTunables, v1.34).
func kubeletTunables() map[string]string {
	return map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0",
		"kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	}
}
