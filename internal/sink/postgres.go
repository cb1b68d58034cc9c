// Package sink copies what was measured into a database, where the records of
// many runs can be asked together.
package sink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/jackc/pgx/v5"

	"github.com/cnibench/cnibench/internal/result"
)

// Tables is the SQL that makes the two tables, where they do not exist yet.
// The record as it was written is in the column record; the others are copies
// of what one asks by.
const Tables = `
CREATE TABLE IF NOT EXISTS cnibench_campaigns (
	id text PRIMARY KEY,
	name text NOT NULL,
	started timestamptz,
	finished timestamptz,
	version text,
	testbed text,
	campaign text NOT NULL,
	plan jsonb NOT NULL,
	environment jsonb
);
CREATE TABLE IF NOT EXISTS cnibench_samples (
	campaign_id text NOT NULL REFERENCES cnibench_campaigns (id) ON DELETE CASCADE,
	id text NOT NULL,
	attempt integer NOT NULL,
	block integer NOT NULL,
	status text NOT NULL,
	reason text,
	started timestamptz NOT NULL,
	network text NOT NULL,
	path text NOT NULL,
	placement text NOT NULL,
	link text NOT NULL,
	profile text NOT NULL,
	mtu integer NOT NULL,
	workload text NOT NULL,
	metrics jsonb,
	record jsonb NOT NULL,
	PRIMARY KEY (campaign_id, id, attempt)
);
`

// Pushed is the result of a push.
type Pushed struct {
	// CampaignID is the campaign's key in the database.
	CampaignID string `json:"campaign_id"`
	// Samples is how many records the directory has, New how many of them the
	// database had not.
	Samples int64 `json:"samples"`
	New     int64 `json:"new"`
}

// Push copies a result directory into a PostgreSQL database, all or nothing. A
// existing record stays as it is, so a push may be repeated while
// a run goes on. address is as libpq takes it: postgres://host/database.
func Push(ctx context.Context, address, dir string) (Pushed, error) {
	config, err := parseURL(address)
	if err != nil {
		return Pushed{}, err
	}
	rec, err := result.Read(dir)
	if err != nil {
		return Pushed{}, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return Pushed{}, connectError(config, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	p := Pushed{CampaignID: campaignID(rec), Samples: int64(len(rec.Samples))}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Two pushes at once would both find no table, and one then fail.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('cnibench'))"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, Tables); err != nil {
			return fmt.Errorf("make the tables: %w", err)
		}
		if err := pushCampaign(ctx, tx, p.CampaignID, rec); err != nil {
			return fmt.Errorf("the campaign: %w", err)
		}
		p.New, err = pushSamples(ctx, tx, p.CampaignID, rec.Samples)
		return err
	})
	if err != nil {
		return Pushed{}, fmt.Errorf("push %s: %w", dir, err)
	}
	return p, nil
}

// parseURL refuses a password, which all who can list processes would read. A
// server on another machine must prove who it is, unless the address or
// PGSSLMODE asks for less: whoever is between would read the records otherwise,
// and the password.
func parseURL(text string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, errors.New("no address of a database: want postgres://user@host/database")
	}
	if passwordIn(text) {
		return nil, errors.New("a password on the command line can be read by others: leave it out, and set PGPASSWORD or write ~/.pgpass")
	}
	local := isLocal(config.Host)
	for _, f := range config.Fallbacks {
		local = local && isLocal(f.Host)
	}
	if local || asksForMode(text) {
		return config, nil
	}
	return pgx.ParseConfig(withVerification(text))
}

// isLocal recognises a socket's folder and this machine's loopback.
func isLocal(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" || err == nil && addr.IsLoopback()
}

// asksForMode reports whether somebody chose how far TLS is verified.
func asksForMode(text string) bool {
	if os.Getenv("PGSSLMODE") != "" {
		return true
	}
	if u, err := url.Parse(text); err == nil && u.Scheme != "" {
		return u.Query().Has("sslmode")
	}
	return strings.Contains(text, "sslmode=")
}

// withVerification is an address of either form with sslmode=verify-full.
func withVerification(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return text + " sslmode=verify-full"
	}
	q := u.Query()
	q.Set("sslmode", "verify-full")
	u.RawQuery = q.Encode()
	return u.String()
}

// connectError adds the cure where the server could not prove who it is.
func connectError(config *pgx.ConnConfig, err error) error {
	err = fmt.Errorf("connect to the database: %w", err)
	if config.TLSConfig != nil && !config.TLSConfig.InsecureSkipVerify {
		err = fmt.Errorf("%w\nif your own authority signed its certificate, name its certificate: ?sslrootcert=FILE; ?sslmode=require trusts any server", err)
	}
	return err
}

// passwordIn reports whether an address of either form has a password in it.
func passwordIn(text string) bool {
	if u, err := url.Parse(text); err == nil && u.Scheme != "" {
		_, has := u.User.Password()
		return has || u.Query().Has("password")
	}
	return strings.Contains(text, "password=")
}

// campaignID identifies a campaign: what was asked for, in which order, and
// when it began.
func campaignID(rec result.Recorded) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d\n%s%d\n%s", len(rec.Campaign), rec.Campaign, len(rec.Plan), rec.Plan)
	if rec.Environment != nil {
		fmt.Fprint(sum, rec.Environment.Started.UTC().Format(time.RFC3339Nano))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// pushCampaign writes the campaign's row; that of a run that went on since has
// its environment and end renewed.
func pushCampaign(ctx context.Context, tx pgx.Tx, id string, rec result.Recorded) error {
	var about struct {
		Name string `yaml:"name"`
	}
	if err := yaml.Unmarshal(rec.Campaign, &about); err != nil {
		return err
	}
	var started, finished *time.Time
	var version, testbed *string
	var environment []byte
	if e := rec.Environment; e != nil {
		var err error
		if environment, err = json.Marshal(e); err != nil {
			return err
		}
		started, version, testbed = &e.Started, &e.Version, &e.Testbed
		if !e.Finished.IsZero() {
			finished = &e.Finished
		}
	}
	_, err := tx.Exec(ctx, `INSERT INTO cnibench_campaigns (id, name, started, finished, version, testbed, campaign, plan, environment)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (id) DO UPDATE SET finished = excluded.finished, environment = excluded.environment`,
		id, about.Name, started, finished, version, testbed, string(rec.Campaign), string(rec.Plan), nullable(environment))
	return err
}

func nullable(data []byte) any {
	if data == nil {
		return nil
	}
	return string(data)
}

// columns of cnibench_samples, in the order of row.
func columns() []string {
	return []string{"campaign_id", "id", "attempt", "block", "status", "reason", "started", "network", "path", "placement",
		"link", "profile", "mtu", "workload", "metrics", "record"}
}

func row(campaign string, s *result.Sample) ([]any, error) {
	record, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var metrics, reason any
	if s.Metrics != nil {
		metrics = s.Metrics
	}
	if s.Reason != "" {
		reason = s.Reason
	}
	c := s.Cell
	return []any{campaign, s.ID, s.Attempt, s.Block, s.Status, reason, s.Started, c.Network, c.Path, c.Placement,
		c.Link, c.Profile, c.MTU, c.Workload, metrics, json.RawMessage(record)}, nil
}

// pushSamples copies all records to a table of this transaction's own, and from
// there those that are new.
func pushSamples(ctx context.Context, tx pgx.Tx, campaign string, samples []result.Sample) (int64, error) {
	_, err := tx.Exec(ctx, "CREATE TEMPORARY TABLE cnibench_pushed (LIKE cnibench_samples) ON COMMIT DROP")
	if err != nil {
		return 0, err
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"cnibench_pushed"}, columns(), pgx.CopyFromSlice(len(samples), func(i int) ([]any, error) {
		return row(campaign, &samples[i])
	}))
	if err != nil {
		return 0, fmt.Errorf("the samples: %w", err)
	}
	tag, err := tx.Exec(ctx, "INSERT INTO cnibench_samples SELECT * FROM cnibench_pushed ON CONFLICT DO NOTHING")
	return tag.RowsAffected(), err
}
