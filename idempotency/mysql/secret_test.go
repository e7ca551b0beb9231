package mysql

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/internal/testservers"
)

// S12: a password is in no error and in no line of the log, however opening fails.
func TestPasswordStaysSecret(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry-in-the-pool"
	d := testservers.MariaDB(t).Database(t)
	admin := client(t, d, "")
	user := "locked_" + d.Name
	run(t, admin, fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY 'another'", user))
	t.Cleanup(func() { run(t, admin, fmt.Sprintf("DROP USER '%s'@'%%'", user)) })
	for _, c := range []struct{ name, user, addr, want string }{
		{"WrongPassword", user, d.Addr, "Access denied"},
		{"NoUser", "nobody", d.Addr, "Access denied"},
		{"NoHost", user, "no.such.host.invalid:3306", "no.such.host.invalid"},
		{"Refused", user, "127.0.0.1:1", "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			db := clientOf(t, fmt.Sprintf("%s:%s@tcp(%s)/%s", c.user, canary, c.addr, d.Name))
			o := &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			_, opened := Open(t.Context(), db, o)
			for name, err := range map[string]error{
				"open": opened, "migrate": Migrate(t.Context(), db, o), "repartition": Repartition(t.Context(), db, "ns", 1, o),
			} {
				if err == nil || !strings.HasPrefix(err.Error(), "mysql: ") || !strings.Contains(err.Error(), c.want) {
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
