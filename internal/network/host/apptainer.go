package host

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// Apptainer is apptainer exec itself. Its command line follows apptainer-exec(1) of version
// 1.4; no machine with an Apptainer has run it yet.
func Apptainer() network.Network {
	return network.Network{
		Kind:         result.KindReal,
		Name:         "hpc/apptainer",
		Summary:      "Apptainer's exec: an unprivileged container (user and mount namespace) in the node's own network",
		HostNetwork:  true,
		IPv6:         true,
		Needs:        []netns.Feature{apptainerTool()},
		SetUp:        makeImage,
		Wrap:         apptainer,
		Unprivileged: true,
		Datapath: func(ctx context.Context) (string, error) {
			r := exec.NewRunner()
			defer r.Close()
			got, err := r.Run(ctx, exec.Cmd{Argv: []string{"apptainer", "--version"}})
			return strings.TrimSpace(string(got.Stdout)), err // "apptainer version 1.4.0"
		},
	}
}

// apptainerTool is Apptainer, as a feature of the machine.
func apptainerTool() netns.Feature {
	const cure = "install a package of apptainer.org (Debian 12 has none)"
	return netns.Feature{Name: "apptainer", Doc: "the network hpc/apptainer", Cure: cure, Probe: func() error {
		if _, err := exec.LookPath("apptainer"); err != nil {
			return fmt.Errorf("apptainer is not installed: %s", cure)
		}
		return nil
	}}
}

// apptainer is its command line up to the program. Root's containers have root's rights
// unless --userns is asked for, which is what other users' have. Apptainer replaces PATH, so
// env gives the program this one's.
func apptainer(self network.Node) ([]string, error) {
	folders, err := toBind(self)
	if err != nil {
		return nil, err
	}
	return []string{
		"apptainer", "--silent", "exec", "--userns", "--no-home", "--bind", strings.Join(folders, ","), image(self),
		"env", "PATH=" + os.Getenv("PATH"),
	}, nil
}
