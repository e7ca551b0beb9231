package postgres

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/internal/testservers"
)

// S12: a password is in no error and in no line of the log, however opening fails.
func TestPasswordStaysSecret(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry-in-the-pool"
	d := testservers.StartPostgres(t, testservers.Options{}).Database(t)
	admin := pool(t, d)
	run(t, admin, `CREATE ROLE app LOGIN PASSWORD 'another'`)
	// From here on passwords are asked for.
	run(t, admin, `DO $$ BEGIN EXECUTE format('COPY (SELECT ''host all all 127.0.0.1/32 scram-sha-256'') TO %L', current_setting('hba_file')); END $$`, `SELECT pg_reload_conf()`)
	for _, c := range []struct {
		name   string
		change func(*pgxpool.Config)
		want   string
	}{
		{"WrongPassword", func(*pgxpool.Config) {}, "password authentication failed"},
		{"NoRole", func(c *pgxpool.Config) { c.ConnConfig.User = "nobody" }, "password authentication failed"},
		{"NoHost", func(c *pgxpool.Config) { c.ConnConfig.Host = "no.such.host.invalid" }, "no.such.host.invalid"},
		{"Refused", func(c *pgxpool.Config) { c.ConnConfig.Port = 1 }, "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			p := pool(t, d, func(x *pgxpool.Config) {
				x.ConnConfig.User, x.ConnConfig.Password = "app", canary
				c.change(x)
			})
			o := &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			_, opened := Open(t.Context(), p, o)
			for name, err := range map[string]error{
				"open": opened, "migrate": Migrate(t.Context(), p, o), "repartition": Repartition(t.Context(), p, "ns", 1, o),
			} {
				if err == nil || !strings.HasPrefix(err.Error(), "postgres: ") || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v, want an error that says %q", name, err, c.want)
				} else if strings.Contains(err.Error(), canary) {
					t.Errorf("%s tells the password: %v", name, err)
				}
			}
			if strings.Contains(log.String(), canary) {
				t.Errorf("the log tells the password: %s", log.String())
			}
		})
	}
}
