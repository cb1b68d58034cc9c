package section

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
)

// repeat gives the commands that measure the same again: the version, the
// campaign, the seed.
func repeat(d *report.Document) []page.Element {
	out := versions(d)
	if d.Dir == "" {
		return append(out, page.Para("The result directory is not known, so its command cannot be given."))
	}
	again := filepath.Clean(d.Dir) + "-again"
	run := []string{"cnibench", "run", filepath.Join(d.Dir, result.CampaignFile)}
	if d.Campaign.Testbed != "" {
		run = append(run, "--testbed", d.Campaign.Testbed)
	}
	if len(d.Plan.Cells) > 0 {
		run = append(run, "--seed", fmt.Sprint(d.Plan.Seed))
	} else {
		out = append(out, page.Para("There is no plan, so the seed of the order is not known: a new one is drawn."))
	}
	if d.Plan.NullTest {
		run = append(run, "--null-test")
	}
	for _, n := range report.SortedKeys(d.Plan.Conflists) {
		out = append(out, page.Para("The campaign names a conflist of its own for "+n+" (SHA-256 "+d.Plan.Conflists[n]+"), which is not in the result directory: put it where the campaign says."))
	}
	return append(out,
		page.Para("The same campaign in the same order of blocks, into a new directory:"), page.Code(command(append(run, "--out", again)...)),
		page.Para("What differs between the two, beyond chance:"), page.Code(command("cnibench", "compare", d.Dir, again)),
		page.Para("The records are in "+filepath.Join(d.Dir, result.SamplesFile)+", one line per sample; what external tools printed is in "+filepath.Join(d.Dir, result.RawDir)+"."),
	)
}

// module is where this program comes from.
const module = "github.com/cnibench/cnibench"

// versions says how to get the program that measured, and names the tools.
func versions(d *report.Document) []page.Element {
	e := d.Environment
	if e == nil {
		return []page.Element{page.Para("There is no environment.json, so the versions that measured are not known.")}
	}
	var out []page.Element
	described := regexp.MustCompile(`^(?:v.*-g)?([0-9a-f]{7,40})$`).FindStringSubmatch(e.Version)
	switch {
	case regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(e.Version):
		out = append(out, page.Para("The version that measured:"), page.Code(command("go", "install", module+"@"+e.Version)))
	case described != nil:
		out = append(out, page.Para("The version that measured, "+e.Version+", in a clone of "+module+":"), page.Code(command("git", "checkout", described[1])), page.Code(command("make", "build")))
	case e.Version == "":
		out = append(out, page.Para("Which cnibench measured is not recorded."))
	default:
		out = append(out, page.Para("Measured by cnibench "+e.Version+", which names no revision that could be built again."))
	}
	var tools []string
	for _, t := range report.SortedKeys(e.Tools) {
		tools = append(tools, t+" ("+e.Tools[t]+")")
	}
	if len(tools) > 0 {
		out = append(out, page.Para("With kernel "+e.Host.Kernel+" and these tools: "+strings.Join(tools, ", ")+"."))
	} else {
		out = append(out, page.Para("With kernel "+e.Host.Kernel+"."))
	}
	return out
}

// command is argv as it can be pasted into a shell.
func command(argv ...string) string { return exec.Cmd{Argv: argv}.String() }
