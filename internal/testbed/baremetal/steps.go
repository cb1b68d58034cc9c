package baremetal

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bootstrap asks every host whether it can be used, and puts back what a
// killed run left there.
func (b *Testbed) Bootstrap(ctx context.Context) error {
	good, err := b.ask(ctx)
	if len(good) == 0 || err != nil && !b.options.KeepGoing {
		return err
	}
	if _, held := b.occupy(ctx, good); held != nil {
		return errors.Join(err, held)
	}
	records, playErr := b.player.play(ctx, b.inventory.Path, "bootstrap", map[string]any{}, strings.Join(good, ","))
	b.reportRestored(records)
	if err == nil && playErr == nil && restored(records) {
		_, err = b.ask(ctx) // what they said before was of a host that had not been put back
	}
	b.ready = err == nil && playErr == nil
	return errors.Join(err, playErr)
}

// restored reports whether a step put anything back.
func restored(records []record) bool {
	return slices.ContainsFunc(records, func(r record) bool { return len(r.Restored) > 0 })
}

// ask gathers the facts of both ends, says what is wrong with each host, and
// names those with which nothing is.
func (b *Testbed) ask(ctx context.Context) (good []string, err error) {
	var errs []error
	for i, e := range b.ends {
		var err error
		if e.address, err = e.host.dataAddress(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		peer, err := b.ends[1-i].host.dataAddress(ctx)
		if err != nil {
			continue // reported when its own turn comes
		}
		e.facts, err = e.host.ask(ctx, b.options.Runner, peer.String())
		if err == nil {
			err = e.host.check(e.facts, b.options.Program)
		}
		if err == nil {
			good = append(good, e.host.Name)
		}
		errs = append(errs, err)
	}
	if b.HasCluster() {
		if _, err := b.Kubeconfig(ctx); err != nil && b.options.KeepGoing {
			b.options.Say("the cluster is left out: %v", err)
			b.inventory.ControlPlane = nil
		} else {
			errs = append(errs, err)
		}
	}
	if sink := b.inventory.Sink; sink != nil {
		if _, err := sink.run(ctx, b.options.Runner, "true"); err != nil && b.options.KeepGoing {
			b.options.Say("the sink is left out: %v", err)
			b.inventory.Sink = nil
		} else if err != nil {
			errs = append(errs, fmt.Errorf("sink: %w", err))
		} else {
			good = append(good, sink.Name)
		}
	}
	return good, errors.Join(errs...)
}

// reportRestored reports what a step found of a killed run.
func (b *Testbed) reportRestored(records []record) {
	for _, r := range records {
		if len(r.Restored) > 0 {
			b.options.Say("%s: put back what a killed run had changed: %s", r.Host, strings.Join(r.Restored, ", "))
		}
		if len(r.PIDs) > 0 {
			b.options.Say("%s: ended what a killed run had left running there: processes %v", r.Host, r.PIDs)
		}
	}
}

// both are the names of client and server.
func (b *Testbed) both() []string { return []string{b.inventory.Client.Name, b.inventory.Server.Name} }

// Deploy copies this program to client and server.
func (b *Testbed) Deploy(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	held, err := b.occupy(ctx, b.both())
	if len(held) == 0 || err != nil && !b.options.KeepGoing {
		return err
	}
	vars := map[string]any{"program": b.options.Program}
	b.deployed = true // also where it fails half-way
	_, playErr := b.player.play(ctx, b.inventory.Path, "deploy", vars, strings.Join(held, ","))
	return errors.Join(err, playErr)
}

// Destroy puts both hosts back as they were, whatever run changed them. One that
// does not answer does not hinder the other.
func (b *Testbed) Destroy(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	held, err := b.occupy(ctx, b.both())
	if len(held) == 0 && !isLost(err) {
		return err
	}
	return b.notBack(errors.Join(err, b.putBack(ctx, held)))
}

// destroy puts back what this command changed. A host that another has by now is
// left to it: that put back what was found.
func (b *Testbed) destroy(ctx context.Context) error {
	var taken, errs []error
	var mine []string
	for _, e := range b.ends {
		var wrong *HostError
		switch err := b.holdAgain(ctx, e); {
		case errors.As(err, &wrong) && wrong.Taken:
			taken = append(taken, err)
		case isLost(err):
			errs = append(errs, err)
		default:
			mine = append(mine, e.host.Name)
		}
	}
	errs = append(errs, b.putBack(ctx, mine))
	return errors.Join(append(taken, b.notBack(errors.Join(errs...)))...)
}

func (b *Testbed) putBack(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	records, err := b.player.play(ctx, b.inventory.Path, "destroy", map[string]any{}, strings.Join(names, ","))
	if !b.deployed {
		b.reportRestored(records)
	}
	if err == nil && len(names) == len(b.ends) {
		b.deployed, b.tuned = false, tuning{}
	}
	return err
}

// notBack adds to what kept hosts from being put back how that is done later.
func (b *Testbed) notBack(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\nnot all is as it was; when the hosts answer: cnibench hosts reset --inventory %s", err, b.options.Inventory)
}

// Collect copies a result directory into a folder of the sink, under its own
// name. Again, it copies what is new.
func (b *Testbed) Collect(ctx context.Context, dir string) error {
	if b.inventory.Sink == nil {
		return fmt.Errorf("inventory %s has no group sink: name a host in it, with cnibench_sink_dir", b.inventory.Path)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(abs, "samples.jsonl")); err != nil {
		return fmt.Errorf("no result directory: %w", err)
	}
	archive := filepath.Join(b.player.dir.Name(), "results.tar.gz")
	if err := pack(abs, archive); err != nil {
		return fmt.Errorf("pack %s: %w", dir, err)
	}
	vars := map[string]any{"archive": archive, "cnibench_sink_dir": b.inventory.Sink.SinkDir}
	_, err = b.player.play(ctx, b.inventory.Path, "collect", vars, b.inventory.Sink.Name)
	return errors.Join(err, os.Remove(archive))
}

// pack writes a folder's files into a tar file, below the folder's own name.
func pack(dir, archive string) (err error) {
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zip := gzip.NewWriter(f)
	out := tar.NewWriter(zip)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() && !d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(filepath.Dir(dir), path)
		if err != nil {
			return err
		}
		return packOne(out, path, rel)
	})
	return errors.Join(err, out.Close(), zip.Close())
}

func packOne(out *tar.Writer, path, name string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	h, err := tar.FileInfoHeader(info, "")
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname, h.Uid, h.Gid = name, "", "", 0, 0
	if err := out.WriteHeader(h); err != nil || info.IsDir() {
		return err
	}
	_, err = io.Copy(out, in)
	return err
}
