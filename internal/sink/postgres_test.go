package sink

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cnibench/cnibench/internal/labtest/postgres"
)

// recorded is a directory that a run in the lab wrote.
const recorded = "../result/testdata/v1"

// TestPush: all records arrive, a second push adds none, a run that went on adds
// what is new, and what the database says is what the directory says.
func TestPush(t *testing.T) {
	address := postgres.Start(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(recorded)); err != nil {
		t.Fatal(err)
	}
	samples := filepath.Join(dir, "samples.jsonl")
	whole, err := os.ReadFile(samples)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(whole), "\n")+"\n", "\n")
	half := strings.Join(lines[:10], "")
	for _, step := range []struct {
		name, records string
		want          Pushed
	}{
		{"in mid-run", half, Pushed{Samples: 10, New: 10}},
		{"again", half, Pushed{Samples: 10, New: 0}},
		{"at its end", string(whole), Pushed{Samples: 36, New: 26}},
		{"and again", string(whole), Pushed{Samples: 36, New: 0}},
	} {
		if err := os.WriteFile(samples, []byte(step.records), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := Push(t.Context(), address, dir)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got.Samples != step.want.Samples || got.New != step.want.New || got.CampaignID == "" {
			t.Errorf("%s: %+v, want %+v", step.name, got, step.want)
		}
	}
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var campaigns, all, same int
	err = conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM cnibench_campaigns WHERE finished IS NOT NULL), count(*),
		count(*) FILTER (WHERE record->>'id' = id AND (record->'cell'->>'mtu')::int = mtu
			AND (status <> 'ok' OR metrics = record->'metrics'))
		FROM cnibench_samples`).Scan(&campaigns, &all, &same)
	if err != nil {
		t.Fatal(err)
	}
	if campaigns != 1 || all != 36 || same != 36 {
		t.Errorf("%d campaigns, %d samples, %d of them as recorded; want 1, 36, 36", campaigns, all, same)
	}
}

func TestPushRefuses(t *testing.T) {
	for _, c := range []struct{ address, dir, want string }{
		{"postgres://me:secret@db/x", recorded, "PGPASSWORD"},
		{"postgres://db/x?password=secret", recorded, "PGPASSWORD"},
		{"host=db password=secret", recorded, "PGPASSWORD"},
		{"postgres://db:port/x", recorded, "want postgres://"},
		{"postgres:///x?host=/nonexistent", t.TempDir(), "no result directory"},
		{"postgres:///x?host=/nonexistent", recorded, "connect to the database"},
	} {
		_, err := Push(t.Context(), c.address, c.dir)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.address, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

// Unless the user allows it, nobody between this machine and the server can read
// or change what is pushed.
func TestPushVerifiesTheServer(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	t.Setenv("HOME", t.TempDir()) // no service file, no certificate
	for address, verified := range map[string]bool{
		"postgres://bench@db.example/results":                     true,
		"postgres://bench@db.example/results?application_name=x":  true,
		"host=db.example user=bench":                              true,
		"postgres://bench@192.0.2.9,127.0.0.1/results":            true,
		"postgres://bench@db.example/results?sslmode=require":     false,
		"host=db.example sslmode=prefer":                          false,
		"postgres://bench@localhost/results":                      false,
		"postgres://bench@[::1]/results":                          false,
		"postgres:///postgres?user=postgres&host=/run/postgresql": false,
	} {
		config, err := parseURL(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		tlsConfigs := []*tls.Config{config.TLSConfig}
		for _, f := range config.Fallbacks {
			tlsConfigs = append(tlsConfigs, f.TLSConfig)
		}
		for _, c := range tlsConfigs {
			if got := c != nil && !c.InsecureSkipVerify && c.ServerName != ""; got != verified {
				t.Errorf("%s: verified %v, want %v", address, got, verified)
			}
		}
	}
}
