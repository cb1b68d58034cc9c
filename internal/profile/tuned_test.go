package profile

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

func files(texts map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range texts {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// TestKnobsMissing: knobs of the scheduler are named that a profile of tuned, or one that it
// includes, sets and the machine does not have.
func TestKnobsMissing(t *testing.T) {
	const base, top = "[main]\nsummary=x\n[scheduler]\n# sched_latency_ns = 1\nsched_min_granularity_ns = 10\nsched_migration_cost_ns=5\n", "[main]\ninclude = base\n\n[sysctl]\nsched_rt=1\n"
	profiles := map[string]string{"usr/lib/tuned/base/tuned.conf": base, "usr/lib/tuned/top/tuned.conf": top, "usr/lib/tuned/loop/tuned.conf": "[main]\ninclude=loop\n[scheduler]\nsched_x=1\n",
		"usr/lib/tuned/profiles/two/tuned.conf": "[main]\ninclude=top ; base\n"}
	with := func(more ...string) fstest.MapFS {
		root := files(profiles)
		for _, name := range more {
			root[name] = &fstest.MapFile{}
		}
		return root
	}
	for _, c := range []struct {
		name, tuned string
		root        fstest.MapFS
		want        []string
	}{
		{"both are missing, by what is included", "top", with(), []string{"migration_cost_ns", "min_granularity_ns"}},
		{"one is in debugfs", "base", with("sys/kernel/debug/sched/migration_cost_ns"), []string{"min_granularity_ns"}},
		{"both are there", "base", with("sys/kernel/debug/sched/migration_cost_ns", "proc/sys/kernel/sched_min_granularity_ns"), nil},
		{"the administrator's own comes first", "top", files(map[string]string{"etc/tuned/top/tuned.conf": "[main]\n", "usr/lib/tuned/top/tuned.conf": base}), nil},
		{"it includes itself, and is named once", "loop", with(), []string{"x"}},
		{"it includes two, and one of them the other", "two", with(), []string{"migration_cost_ns", "min_granularity_ns"}},
		{"no such profile", "none", with(), nil},
		{"a name outside of the folders", "../../base", with(), nil},
	} {
		got := KnobsMissing(c.root, c.tuned)
		if !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// closed is a file system of which a user may not look into /sys/kernel/debug.
type closed struct{ fstest.MapFS }

func (c closed) Stat(name string) (fs.FileInfo, error) {
	if strings.HasPrefix(name, "sys/kernel/debug") {
		return nil, fs.ErrPermission
	}
	return c.MapFS.Stat(name)
}

// A knob that a user may not look up is not called missing.
func TestKnobsOfAnotherUser(t *testing.T) {
	root := closed{files(map[string]string{"usr/lib/tuned/x/tuned.conf": "[scheduler]\nsched_x=1\n"})}
	if got := KnobsMissing(root, "x"); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

func FuzzKnobsMissing(f *testing.F) {
	f.Add("[main]\ninclude=base\n[scheduler]\nsched_x=1\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzed.Within(t)()
		KnobsMissing(files(map[string]string{"usr/lib/tuned/x/tuned.conf": text}), "x")
	})
}
