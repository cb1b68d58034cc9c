package ansible

import (
	"strings"
	"testing"
)

// powerLoss notes which names each folder had when it was last synced, and shows,
// after each step, the names that a loss of power would lose or bring back.
const powerLoss = `
import os, stat, sys
from ansible_collections.cnibench.testbed.plugins.module_utils import kept

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
	if got := strings.TrimSpace(python(t, powerLoss, t.TempDir())); got != "done" {
		t.Error(got)
	}
}

// movedFile checks, whenever a file loses a name, that another name of it is on the disk.
const movedFile = `
import errno, os, shutil, stat, sys
from ansible_collections.cnibench.testbed.plugins.module_utils import kept

synced = {}
fsync, unlink, link = os.fsync, os.unlink, os.link

def noted(fd):
    path = os.readlink("/proc/self/fd/%d" % fd)
    synced[path] = sorted(os.listdir(path)) if stat.S_ISDIR(os.fstat(fd).st_mode) else open(path).read()
    fsync(fd)

def checked(path):
    there = os.path.join(target, os.path.basename(path))
    if path.startswith(source) and os.path.basename(path) not in synced.get(target, []):
        print("%s is removed before its other name is on the disk" % os.path.basename(path))
    if path.startswith(source) and synced.get(there + ".new") != "x":
        print("%s is removed before its content is on the disk" % os.path.basename(path))
    unlink(path)

def other_disk(path, name):
    raise OSError(errno.EXDEV, "another file system")

os.fsync, os.unlink = noted, checked
for os.link in (link, other_disk):
    root = os.path.join(os.path.realpath(sys.argv[1]), os.link.__name__)
    source, target = os.path.join(root, "source"), os.path.join(root, "target")
    os.makedirs(source)
    os.makedirs(target)
    path = os.path.join(source, "10-flannel.conflist")
    # The second time, a loss of power has left it in both folders.
    for again in (False, True):
        with open(path, "w") as f:
            f.write("x")
        if again:
            unlink(path)
            link(os.path.join(target, os.path.basename(path)), path)
        synced.clear()
        kept.move(path, target)
        if os.listdir(source) or os.listdir(target) != [os.path.basename(path)] or synced.get(source) != []:
            print(os.listdir(source), os.listdir(target), synced)
print("done")
`

// A configuration that is moved aside has a name at every moment at which the power may fail.
func TestMovedFilesSurviveALossOfPower(t *testing.T) {
	if got := strings.TrimSpace(python(t, movedFile, t.TempDir())); got != "done" {
		t.Error(got)
	}
}
