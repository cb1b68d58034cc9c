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

// Charliecloud is ch-run itself: programs are in a user and a mount namespace of their own,
// in a root folder of their own, and in their node's network.
func Charliecloud() network.Network {
	return network.Network{
		Kind:         result.KindReal,
		Name:         "hpc/charliecloud",
		Summary:      "Charliecloud's ch-run: an unprivileged container (user and mount namespace) in the node's own network",
		HostNetwork:  true,
		IPv6:         true,
		Needs:        []netns.Feature{charliecloudTool()},
		SetUp:        makeImage,
		Wrap:         charliecloud,
		Unprivileged: true,
		Datapath:     charliecloudVersion,
	}
}

// charliecloudTool is the Debian package, as a feature of the machine: ch-checkns, which is
// in it, tries what ch-run needs of the kernel. It makes the folder /tmp/newroot for that and
// leaves it behind, so it has a /tmp of its own.
func charliecloudTool() netns.Feature {
	const cure = "apt-get install charliecloud-runtime"
	return netns.Feature{Name: "ch-run", Doc: "the network hpc/charliecloud", Cure: cure, Probe: func() error {
		if _, err := exec.LookPath("ch-run"); err != nil {
			return fmt.Errorf("ch-run is not installed: %s", cure)
		}
		r := exec.NewRunner()
		defer r.Close()
		argv := []string{"unshare", "--mount"}
		if os.Geteuid() != 0 {
			argv = append(argv, "--map-root-user")
		}
		argv = append(argv, "sh", "-c", "mount -t tmpfs tmpfs /tmp && exec ch-checkns")
		if _, err := r.Run(context.Background(), exec.Cmd{Argv: argv}); err != nil {
			return fmt.Errorf("ch-run cannot run containers on this machine: %w", err)
		}
		return nil
	}}
}

// charliecloud is ch-run's command line up to the program (ch-run(1)). ch-run refuses to run
// without USER. It would replace /tmp by TMPDIR, so that no path there were the same inside:
// the container has both at their paths. It would replace passwd and group by shorter ones.
func charliecloud(self network.Node) ([]string, error) {
	folders, err := toBind(self)
	if err != nil {
		return nil, err
	}
	argv := []string{"env", "-u", "TMPDIR", "USER=root", "ch-run", "--no-passwd"}
	if tmp := os.Getenv("TMPDIR"); tmp != "" {
		argv = append(argv, "--env-no-expand", "--set-env=TMPDIR="+tmp)
	}
	for _, f := range folders {
		argv = append(argv, "--bind="+f)
	}
	return append(argv, image(self), "--"), nil
}

// charliecloudVersion says what starts the pods.
func charliecloudVersion(ctx context.Context) (string, error) {
	r := exec.NewRunner()
	defer r.Close()
	got, err := r.Run(ctx, exec.Cmd{Argv: []string{"ch-run", "--version"}, Env: []string{"USER=root"}})
	if err != nil {
		return "", err
	}
	version := strings.TrimSpace(string(got.Stdout) + string(got.Stderr)) // "0.31", on stderr
	if version == "" {
		return "", fmt.Errorf("ch-run --version printed nothing")
	}
	return "Charliecloud " + version, nil
}
