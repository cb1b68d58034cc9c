package result

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func seconds(s float64) *float64 { return &s }

func sample(id string) Sample {
	return Sample{Schema: Schema, ID: id, Block: 1, Attempt: 1, Status: StatusOK, Started: time.Unix(1, 0).UTC(),
		Cell:            Cell{Network: HostNetwork, Path: PathHostToHost, Workload: "tcp_rr", Streams: 1},
		MeasuredSeconds: seconds(1), Metrics: map[string]float64{"transactions_per_second": 10}}
}

func newDir(t *testing.T) *Dir {
	t.Helper()
	d, err := Create(filepath.Join(t.TempDir(), "r"), []byte("name: x\n"), map[string]int{"schema": 1})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAppendedIsRead(t *testing.T) {
	d := newDir(t)
	for _, id := range []string{"b01-c000", "b01-c001"} {
		if err := d.Append(sample(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Read(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Samples) != 2 || r.Samples[1].ID != "b01-c001" || r.Torn != 0 || string(r.Campaign) != "name: x\n" {
		t.Errorf("read %+v", r)
	}
	if r.Complete() {
		t.Error("a run without its closing environment is shown as complete")
	}
}

func TestSecondRunIsRefused(t *testing.T) {
	d := newDir(t)
	defer d.Close()
	if _, _, _, err := Resume(d.Path); !errors.Is(err, ErrBusy) {
		t.Errorf("resume of a directory that is being written: %v, want ErrBusy", err)
	}
	if _, err := Create(d.Path, nil, nil); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("create over a run: %v, want a hint to --resume", err)
	}
}

func TestTornLastLineIsRepairedAndReported(t *testing.T) {
	for _, torn := range []string{`{"schema":1,"id":"b0`, "{\"schema\":1,\x00\x00\n"} {
		d := newDir(t)
		if err := d.Append(sample("b01-c000")); err != nil {
			t.Fatal(err)
		}
		if _, err := d.samples.WriteString(torn); err != nil {
			t.Fatal(err)
		}
		d.Close()
		if r, err := Read(d.Path); err != nil || len(r.Samples) != 1 || r.Torn != int64(len(torn)) {
			t.Fatalf("read: %d samples, torn %d, %v", len(r.Samples), r.Torn, err)
		}
		d2, records, cut, err := Resume(d.Path)
		if err != nil || len(records) != 1 || cut.Bytes != int64(len(torn)) {
			t.Fatalf("resume: %d records, cut %+v, %v", len(records), cut, err)
		}
		if kept, err := os.ReadFile(cut.Kept); err != nil || string(kept) != torn || !strings.HasPrefix(filepath.Base(cut.Kept), SamplesFile+".cut-") {
			t.Errorf("%s holds %q (%v), want what was cut off", cut.Kept, kept, err)
		}
		if err := d2.Append(sample("b01-c001")); err != nil {
			t.Fatal(err)
		}
		d2.Close()
		if r, err := Read(d.Path); err != nil || len(r.Samples) != 2 || r.Torn != 0 {
			t.Errorf("after resume: %d samples, torn %d, %v", len(r.Samples), r.Torn, err)
		}
	}
}

// A run that is aborted in its first sample may have kept raw output of it.
func TestDiscardLeavesAPlaceForTheNextRun(t *testing.T) {
	for name, files := range map[string][]string{"raw output": nil, "somebody's file": {"thesis.tex"}} {
		d := newDir(t)
		if err := d.SaveRaw("b01-c000", "client", []string{"iperf3"}, "out", ""); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(d.Path, f), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Discard(); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(d.Path)
		if len(left) != len(files) || len(files) == 0 && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: left %v (%v)", name, left, err)
		}
	}
}

// A typed --out may name anything.
func TestResumeLeavesForeignFilesAlone(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"one line that is no record": {SamplesFile: "precious"},
		"a campaign, no plan":        {SamplesFile: "", CampaignFile: "name: x\n", "thesis.tex": "precious"},
		"another program's plan":     {SamplesFile: "precious", CampaignFile: "name: x\n", PlanFile: "[1]"},
		"a plan without a schema":    {SamplesFile: "precious", CampaignFile: "name: x\n", PlanFile: "{}", ".tmp-other": "precious"},
		"no samples":                 {"thesis.tex": "precious"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, _, err := Resume(dir); err == nil || errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "no result directory") {
				t.Errorf("resume: %v, want a refusal", err)
			}
			for file, text := range files {
				if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != text {
					t.Errorf("%s holds %q (%v), had %q", file, got, err, text)
				}
			}
			if now, err := os.ReadDir(dir); err != nil || len(now) != len(files) {
				t.Errorf("the folder holds %v (%v)", now, err)
			}
		})
	}
}

func TestBadLinesAreRefusedWithTheirPlace(t *testing.T) {
	good := `{"schema":1,"id":"b01-c000","block":1,"attempt":1,"cell":{"network":"host","path":"host-to-host","placement":"inter-host","link":"unshaped","profile":"default_settings","mtu":1500,"workload":"tcp_rr"},"status":"ok","started":"2026-01-01T00:00:00Z","measured_seconds":1,"metrics":{"transactions_per_second":10}}`
	for name, tc := range map[string]struct{ line, want string }{
		"newer schema":       {strings.Replace(good, `"schema":1`, `"schema":99`, 1), "schema 99 is newer"},
		"torn in the middle": {`{"schema":1,`, ":1: not a record"},
		"unknown metric":     {strings.Replace(good, "transactions_per_second", "tps", 1), `unknown metric "tps"`},
		"unknown key":        {strings.Replace(good, `"block":1`, `"block":1,"blok":2`, 1), "blok"},
		"negative":           {strings.Replace(good, ":10}", ":-10}", 1), "is -10"},
		"failed with values": {strings.Replace(good, `"ok"`, `"failed","reason":"x"`, 1), "with measured values"},
		"ok without metrics": {strings.Replace(good, `,"metrics":{"transactions_per_second":10}`, "", 1), "without metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, SamplesFile), []byte(tc.line+"\n"+good+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Read(dir)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), SamplesFile+":1") {
				t.Errorf("error %v, want it to hold %q and the line", err, tc.want)
			}
		})
	}
}

// A file whose only line is of a newer schema is not mistaken for a torn one.
func TestNewerLastLineIsNotTorn(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, SamplesFile), []byte("{\"schema\":99}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("error %v", err)
	}
}

func TestDeletedDirectoryIsNoticed(t *testing.T) {
	d := newDir(t)
	defer d.Close()
	if err := os.RemoveAll(d.Path); err != nil {
		t.Fatal(err)
	}
	if err := d.Append(sample("b01-c000")); err == nil || !strings.Contains(err.Error(), "vanished") {
		t.Errorf("error %v", err)
	}
}

// A result file may come from anywhere, and is shown in terminals.
func TestReadTextHoldsNoEscapeSequences(t *testing.T) {
	d := newDir(t)
	s := sample("b01-c000")
	s.Status, s.MeasuredSeconds, s.Metrics = StatusFailed, nil, nil
	s.Cell.Network, s.Reason, s.Warnings = "a\x1b[2J", "b\u009b2J", []string{"c\u202ed", "e\x7f"}
	if err := errors.Join(d.Append(s), d.WriteJSON(EnvironmentFile, Environment{Schema: Schema, Tools: map[string]string{"x": "\x1b[2J"}}), d.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := Read(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Samples[0]
	if got.Cell.Network != `a\x1b[2J` || got.Reason != `b\u009b2J` || strings.Join(got.Warnings, " ") != `c\u202ed e\x7f` || r.Environment.Tools["x"] != `\x1b[2J` {
		t.Errorf("read %+v, %+v", got, r.Environment)
	}
}
