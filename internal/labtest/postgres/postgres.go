// Package postgres is a PostgreSQL of its own for tests.
package postgres

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// Start starts Debian's PostgreSQL in a folder, on a socket there and nowhere else, as the
// user that the package made, and gives the address of its database postgres. It ends with
// the test.
func Start(t testing.TB) string {
	t.Helper()
	labtest.Root(t)
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		labtest.Tool(t, "initdb", "postgresql")
	}
	bin := filepath.Dir(slices.Max(found))
	dir, err := os.MkdirTemp("", "cnb-pg-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, -1); err != nil {
		t.Fatal(err)
	}
	r := exec.NewRunner()
	t.Cleanup(func() {
		r.Close()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	as := func(argv ...string) exec.Cmd {
		return exec.Cmd{Argv: append([]string{"setpriv", "--reuid=" + who.Uid, "--regid=" + who.Gid, "--clear-groups"}, argv...), Dir: "/"}
	}
	data := filepath.Join(dir, "data")
	if _, err := r.Run(t.Context(), as(filepath.Join(bin, "initdb"), "-D", data, "-A", "trust", "-N", "-E", "UTF8", "--locale=C.UTF-8", "-U", "postgres")); err != nil {
		t.Fatal(err)
	}
	p, err := r.StartPiped(context.WithoutCancel(t.Context()), as(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Kill()
		_ = p.Wait()
	})
	address := "postgres:///postgres?user=postgres&host=" + dir
	for range 200 {
		if conn, err := pgx.Connect(t.Context(), address); err == nil {
			if err := conn.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			return address
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("PostgreSQL does not answer: %s", p.Stderr())
	return ""
}
