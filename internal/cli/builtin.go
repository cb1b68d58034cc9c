package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/examples"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
)

// builtinFlags replace a campaign file.
type builtinFlags struct {
	networks  []string
	workloads []string
	budget    time.Duration
}

func (f *builtinFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.networks, "network", nil, "without a file: the lab's networks to compare with host (see cnibench list networks)")
	flags.StringSliceVar(&f.workloads, "workload", nil, "without a file: the workloads (see cnibench list workloads)")
	flags.DurationVar(&f.budget, "for", 0, "time budget, such as 2m: the best answer that it allows; sets sampling.max_seconds, max_blocks and until: ranks")
}

// builtinName is the name of a built-in campaign in errors.
const builtinName = "built-in campaign"

// manyBlocks is the bound on blocks where a time budget decides.
const manyBlocks = 1000

// text is the built-in campaign as YAML, changed as the flags say.
func (f builtinFlags) text(testbed string) ([]byte, error) {
	text := examples.Quickstart
	switch testbed {
	case "", "lab":
	case campaign.Kubernetes:
		text = examples.Cluster
		if len(f.networks) > 0 {
			return nil, usageError{errors.New("--network chooses a network of the lab; a cluster is measured with the network that it has")}
		}
	default:
		return nil, usageError{fmt.Errorf("--testbed %s needs a campaign file: cnibench run CAMPAIGN.yaml --testbed %s", testbed, testbed)}
	}
	var edits []edit
	if len(f.networks) > 0 {
		names := slices.DeleteFunc(slices.Clone(f.networks), func(n string) bool { return n == result.HostNetwork })
		edits = append(edits, edit{"$.networks", flow(append([]string{result.HostNetwork}, names...))})
	}
	if len(f.workloads) > 0 {
		var lines strings.Builder
		for _, w := range f.workloads {
			fmt.Fprintf(&lines, "- %s\n", builtinWorkload(w))
		}
		edits = append(edits, edit{"$.workloads", lines.String()})
	}
	changed, err := apply(text, edits)
	if err == nil && f.budget > 0 {
		changed, err = withBudget(changed, f.budget)
	}
	return changed, err
}

// withBudget is the text of a campaign with a time budget: the time decides and not the
// number of blocks, and blocks go where ranks are still open.
func withBudget(text []byte, budget time.Duration) ([]byte, error) {
	for _, key := range []struct{ name, value string }{
		{"max_seconds", seconds(budget)}, {"until", campaign.UntilRanks}, {"max_blocks", strconv.Itoa(manyBlocks)},
	} {
		var has struct {
			Sampling map[string]any `yaml:"sampling"`
		}
		if err := yaml.Unmarshal(text, &has); err != nil {
			return nil, usageError{err}
		}
		value, set := has.Sampling[key.name]
		if n, ok := value.(uint64); ok && key.name == "max_blocks" && n >= manyBlocks {
			continue
		}
		var err error
		switch {
		case has.Sampling == nil:
			text = fmt.Appendf(bytes.TrimRight(text, "\n"), "\nsampling:\n  %s: %s\n", key.name, key.value)
		case set:
			text, err = apply(text, []edit{{"$.sampling." + key.name, key.value}})
		default:
			text, err = merge(text, "$.sampling", key.name+": "+key.value)
		}
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%g", d.Seconds()) }

// flow is a list of names in one line of YAML.
func flow(names []string) string { return "[" + strings.Join(names, ", ") + "]" }

// builtinWorkload is a workload with the factors that the quickstart gives it.
func builtinWorkload(name string) string {
	switch name {
	case "tcp_stream", "udp_stream":
		return "{name: " + name + ", message_bytes: [1472], streams: [1]}"
	case "tcp_rr", "udp_rr":
		return "{name: " + name + ", message_bytes: [64]}"
	}
	return "{name: " + name + "}"
}

// edit replaces the value at a path of a YAML document.
type edit struct{ path, value string }

// apply keeps everything else of the text, comments included.
func apply(text []byte, edits []edit) ([]byte, error) {
	file, err := parser.ParseBytes(text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, e := range edits {
		path, err := yaml.PathString(e.path)
		if err != nil {
			return nil, err
		}
		if err := path.ReplaceWithReader(file, strings.NewReader(e.value)); err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", strings.TrimPrefix(e.path, "$."), err)}
		}
	}
	return []byte(file.String()), nil
}

// merge adds keys to the mapping at a path of a YAML document.
func merge(text []byte, at, keys string) ([]byte, error) {
	file, err := parser.ParseBytes(text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	path, err := yaml.PathString(at)
	if err != nil {
		return nil, err
	}
	if err := path.MergeFromReader(file, strings.NewReader(keys)); err != nil {
		return nil, usageError{fmt.Errorf("--for: %w", err)}
	}
	return []byte(file.String()), nil
}

// campaignText reads the campaign that a run was asked for: that of a file, or
// the built-in one as the flags change it. path names it in errors.
func (f *runFlags) campaignText(args []string, in io.Reader) (path string, err error) {
	if f.file != "" && len(args) > 0 {
		return "", usageError{fmt.Errorf("%s and -f %s both name a campaign: use one of them", args[0], f.file)}
	}
	if f.file != "" {
		args = []string{f.file}
	}
	if f.builtin.budget < 0 {
		return "", usageError{fmt.Errorf("--for %v: the time budget must be positive", f.builtin.budget)}
	}
	if len(args) == 0 && f.resume {
		args = []string{filepath.Join(f.out, result.CampaignFile)}
		if _, err := os.Stat(args[0]); err != nil {
			return "", usageError{fmt.Errorf("nothing to resume in %s: %w", f.out, err)}
		}
	}
	if len(args) == 0 {
		if f.testbed == "" && f.cluster != (clusterFlags{}) {
			f.testbed = campaign.Kubernetes
		}
		f.text, err = f.builtin.text(f.testbed)
		return builtinName, err
	}
	if len(f.builtin.networks)+len(f.builtin.workloads) > 0 {
		return "", usageError{fmt.Errorf("--network and --workload replace a campaign file; change %s, or leave it out", args[0])}
	}
	path = args[0]
	if f.file == "-" {
		path = standardInput
		if f.text, err = io.ReadAll(io.LimitReader(in, maxStandardInput)); err != nil {
			return "", err
		}
	}
	if f.builtin.budget > 0 {
		if f.text == nil {
			if f.text, err = campaign.Read(path); err != nil {
				return "", usageError{err}
			}
		}
		f.text, err = withBudget(f.text, f.builtin.budget)
	}
	return path, err
}

const (
	// standardInput names the campaign of -f - in errors.
	standardInput = "standard input"
	// maxStandardInput bounds what is read of it, bytes: more than a campaign may have.
	maxStandardInput = 2 << 20
)

// announce states what a built-in campaign does to a cluster, and asks whether
// to go on; --yes answers for scripts.
func announce(ctx context.Context, c campaign.Campaign, f runFlags, in io.Reader, stderr io.Writer) error {
	where := "the current context of your kubeconfig"
	if f.cluster.context != "" {
		where = "context " + f.cluster.context
	}
	makes := "namespaces of its own, with pods on two nodes (on the host network and on the pod network)"
	if f.cluster.namespace != "" {
		makes = "pods on two nodes in the namespace " + f.cluster.namespace
	}
	fmt.Fprintf(stderr, "cnibench creates %s in %s, and deletes them at the end.\n", makes, where)
	fmt.Fprintf(stderr, "Load: TCP at full speed between the two nodes, for at most %v plus start-up; other traffic of these nodes slows down.\n",
		time.Duration(c.Sampling.MaxSeconds*float64(time.Second)))
	rights := "none of its pods is privileged"
	if f.allowPrivileged {
		rights = "its pods are privileged (--allow-privileged)"
	}
	fmt.Fprintf(stderr, "Rights: those that cnibench rbac prints; %s.\n", rights)
	if f.yes {
		return nil
	}
	if file, ok := in.(*os.File); !ok || !isTerminal(file) {
		return usageError{errors.New("this run needs your consent, and standard input is not a terminal: add --yes to start")}
	}
	fmt.Fprint(stderr, "Start? [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
		return usageError{errors.New("not started")}
	}
}

// linkLatest points results/latest to a result directory in results.
func linkLatest(dir string) error {
	parent, name := filepath.Split(filepath.Clean(dir))
	if filepath.Base(parent) != resultsDir || name == latestLink {
		return nil
	}
	link := filepath.Join(parent, latestLink)
	if info, err := os.Lstat(link); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return nil // somebody's own directory
	}
	next := filepath.Join(parent, fmt.Sprintf(".%s-%d", latestLink, os.Getpid()))
	if err := os.Symlink(name, next); err != nil {
		return err
	}
	if err := os.Rename(next, link); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return nil
}

const (
	// resultsDir is the folder of result directories without --out.
	resultsDir = "results"
	// latestLink is the link in it to the newest one.
	latestLink = "latest"
)

func initCommand(stdout io.Writer) *cobra.Command {
	var f builtinFlags
	var out outputFlags
	var testbed string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "write the campaign that run measures without a file, as YAML to change",
		Long: `init writes the built-in campaign as YAML: the quickstart in the lab, or with
--testbed kubernetes the campaign for one cluster. --network, --workload and --for
change it as they change cnibench run.`,
		Example: `  cnibench init --to campaign.yaml
  cnibench init --network bridge,flannel/vxlan --workload tcp_rr --for 2m
  cnibench init --testbed kubernetes --to cluster.yaml`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, file, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			text, err := f.text(testbed)
			if err != nil {
				return err
			}
			if _, err := campaign.Parse(builtinName, text, known()); err != nil {
				return usageError{err}
			}
			if file == "" || file == stdoutFile {
				_, err = stdout.Write(text)
				return err
			}
			return writeNew(file, text)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&testbed, "testbed", "lab", "lab or kubernetes")
	out.add(cmd.Flags(), []string{formatYAML})
	out.addFile(cmd.Flags(), "", "write to this new file (default: standard output)")
	return cmd
}

// writeNew writes a file that may not exist.
func writeNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return usageError{fmt.Errorf("%s exists: choose another name, or remove it", path)}
	}
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
