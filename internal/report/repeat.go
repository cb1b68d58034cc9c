package report

import (
	"fmt"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/result"
)

// repeat gives the commands that measure the same again.
func repeat(d *document) []block {
	if d.Dir == "" {
		return []block{para("The result directory is not known, so its command cannot be given.")}
	}
	again := filepath.Clean(d.Dir) + "-again"
	run := []string{"cnibench", "run", filepath.Join(d.Dir, result.CampaignFile)}
	if d.Campaign.Testbed != "" {
		run = append(run, "--testbed", d.Campaign.Testbed)
	}
	if len(d.Plan.Cells) > 0 {
		run = append(run, "--seed", fmt.Sprint(d.Plan.Seed))
	}
	return []block{
		para("The same campaign in the same order of blocks, into a new directory:"), code(command(append(run, "--out", again)...)),
		para("What differs between the two, beyond chance:"), code(command("cnibench", "compare", d.Dir, again)),
		para("The records are in " + filepath.Join(d.Dir, result.SamplesFile) + ", one line per sample; what external tools printed is in " + filepath.Join(d.Dir, result.RawDir) + "."),
	}
}

// command is argv as it can be pasted into a shell.
func command(argv ...string) string { return exec.Cmd{Argv: argv}.String() }
