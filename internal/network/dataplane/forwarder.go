package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/network"
)

// RunForwarder starts this program as a node's forwarder in user space, with a
// configuration of package tunnel. It outlives this process where the lab does;
// whoever takes the lab down kills what is in its namespaces.
func RunForwarder(self network.Node, arg string) error { return RunForwarderWith(self, arg, nil) }

// RunForwarderWith is RunForwarder where the configuration has a secret part, which the
// forwarder reads from stdin: arguments are for everybody to see.
func RunForwarderWith(self network.Node, arg string, secret io.Reader) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(forwarderLog(self))
	if err != nil {
		return err
	}
	defer log.Close()
	r := exec.NewRunner()
	defer r.Close()
	return r.Detach(exec.Cmd{Argv: []string{program, "tunnel", arg}, NetNS: self.NS.Path, Stdin: secret}, log)
}

func forwarderLog(self network.Node) string { return filepath.Join(self.DataDir, "tunnel.log") }

// AwaitForwarder waits until ready says so, or fails, or the forwarder has said
// what is wrong. late is the reason for one that does nothing for 10 s.
func AwaitForwarder(ctx context.Context, self network.Node, late string, ready func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("the forwarder is not ready: "+late))
	defer cancel()
	for {
		if ok, err := ready(); ok || err != nil {
			return err
		}
		said, _ := os.ReadFile(forwarderLog(self)) // none: it has said nothing yet
		if text := strings.TrimSpace(string(said)); text != "" {
			return fmt.Errorf("the forwarder said: %s", text)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
