package ansible

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// powerLoss notes which names each folder had when it was last synced, and shows,
// after each step, the names that a loss of power would lose or bring back.
const powerLoss = `
import os, stat, sys
sys.path.insert(0, "plugins/module_utils")
import kept

synced = {}
real = os.fsync

def fsync(fd):
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        path = os.readlink("/proc/self/fd/%d" % fd)
        synced[path] = sorted(os.listdir(path))
    real(fd)

os.fsync = fsync
root = os.path.realpath(sys.argv[1])
values = kept.Kept(os.path.join(root, "var", "lib", "cnibench", "kept.json"))

def check(step):
    for folder, _, _ in os.walk(root):
        if synced.get(folder, []) != sorted(os.listdir(folder)):
            print("after %s the disk has %s of %s" % (step, synced.get(folder), sorted(os.listdir(folder))))

values.old = {"net.core.rmem_max": "212992"}
values.save()
check("the first save")
values.old["net.core.wmem_max"] = "212992"
values.save()
check("the next save")
values.old = {}
values.save()
check("the last value was put back")
print("done")
`

// A host whose power fails after its settings were changed still has the values
// from before, to be put back.
func TestKeptValuesSurviveALossOfPower(t *testing.T) {
	python := labtest.Tool(t, "python3", "python3")
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Run(t.Context(), exec.Cmd{Argv: []string{python, "-B", "-c", powerLoss, t.TempDir()}, Dir: here})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(res.Stdout)); got != "done" {
		t.Error(got)
	}
}
