package cli

import (
	"io"

	"github.com/cnibench/cnibench/internal/live"
	"github.com/cnibench/cnibench/internal/report/format"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
)

// liveProgress shows how a run goes on in a browser as well.
type liveProgress struct {
	*progress
	*live.Server
}

// showLive serves the report of the result directory while it grows.
func showLive(name string, into results, seen *progress) (liveProgress, error) {
	s, err := live.Start(name, len(into.recorded), func(w io.Writer) error {
		in, err := readInput(into.dir.Path, format.Needs{})
		if err != nil {
			return err
		}
		return format.Write(w, "html", in, screen.Options{})
	})
	if err != nil {
		return liveProgress{}, err
	}
	seen.Say("live: %s (this machine alone, until the run ends)", s.URL())
	return liveProgress{seen, s}, nil
}

// Sampled implements bench.Observer.
func (p liveProgress) Sampled(s result.Sample, left int) {
	p.progress.Sampled(s, left)
	p.Server.Sampled(s.Block, left)
}
