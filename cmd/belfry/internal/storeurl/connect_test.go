package storeurl

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/internal/testservers"
)

const canary = "c4nary-p4ssword"

func connect(ctx context.Context, text string) (*Client, error) {
	u, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return Connect(ctx, u)
}

// TestCanary makes connecting fail in each way there is, and looks for the password in the error (S12).
func TestCanary(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := closed.Addr().String()
	closed.Close()
	for _, c := range []struct{ name, text, want string }{
		{"no such host", "postgres://u:CANARY@nowhere.invalid/db", "store postgres://u@nowhere.invalid/db: "},
		{"refused", "postgres://u:CANARY@" + refused + "/db", "refused"},
		{"bad parameter", "postgres://u:CANARY@h/db?sslmode=perhaps", "sslmode"},
		{"bad pool", "postgres://u:CANARY@h/db?pool_max_conns=x", "pool_max_conns"},
		{"bad port", "postgres://u:CANARY@h:99999/db", "port"},
		{"no such host", "mysql://u:CANARY@nowhere.invalid/db", "store mysql://u@nowhere.invalid/db: "},
		{"refused", "mysql://u:CANARY@" + refused + "/db", "refused"},
		{"no database", "mysql://u:CANARY@h", "names no database"},
		{"bad parameter", "mysql://u:CANARY@h/db?tls=perhaps", "parameter tls: give true"},
		{"bad timeout", "mysql://u:CANARY@h/db?timeout=x", "parameter timeout: write a time"},
		{"no certificates", "mysql://u:CANARY@h/db?tls-ca=/dev/null", "holds no certificate"},
		{"nothing", "", "no store is named; give --store or set BELFRY_STORE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client, err := connect(t.Context(), strings.ReplaceAll(c.text, "CANARY", canary))
			if err == nil {
				client.Close()
				t.Fatal("it connected")
			}
			if text := err.Error(); !strings.Contains(text, c.want) || strings.Contains(text, canary) {
				t.Errorf("got %v, want an error that says %q", err, c.want)
			}
		})
	}
}

// TestWrongPassword is refused by real servers, which say so.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db := testservers.Postgres(t).Database(t)
		// Every user is trusted there: what fails is the user.
		_, err := connect(t.Context(), "postgres://nobody:"+canary+"@"+db.Addr+"/"+db.Name)
		if err == nil || !strings.Contains(err.Error(), "nobody") || strings.Contains(err.Error(), canary) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		db := testservers.MariaDB(t).Database(t)
		_, err := connect(t.Context(), "mysql://root:"+canary+"@"+db.Addr+"/"+db.Name)
		if err == nil || !strings.Contains(err.Error(), "Access denied") || strings.Contains(err.Error(), canary) {
			t.Errorf("got %v", err)
		}
	})
}

// TestConnect opens each kind with a password that is right, from the URL and from where clients keep it.
func TestConnect(t *testing.T) {
	db := testservers.MariaDB(t).Database(t)
	root, err := connect(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	user := "u" + db.Name
	for _, statement := range []string{
		"create user '" + user + "'@'%' identified by 'p@ss/w:rd'", "grant all on " + db.Name + ".* to '" + user + "'@'%'",
	} {
		if _, err := root.DB().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	mysql := "mysql://" + user + "@" + db.Addr + "/" + db.Name
	check := func(text, want string) {
		t.Helper()
		c, err := connect(t.Context(), text)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		var got string
		if c.Pool() != nil {
			err = c.Pool().QueryRow(t.Context(), "select current_setting('application_name')").Scan(&got)
		} else if want == "sqlite" {
			err = c.DB().QueryRowContext(t.Context(), "select 'sqlite'").Scan(&got)
		} else {
			err = c.DB().QueryRowContext(t.Context(), "select substring_index(user(), '@', 1)").Scan(&got)
		}
		if err != nil || got != want {
			t.Errorf("%s: got %q (%v), want %q", c.URL(), got, err, want)
		}
	}
	check(strings.Replace(mysql, "@", ":p%40ss%2Fw:rd@", 1), user)
	t.Setenv("MYSQL_PWD", "p@ss/w:rd")
	check(mysql, user)
	pg := testservers.Postgres(t).Database(t).URL()
	check(pg, "belfry")
	check(pg+"&application_name=mine", "mine")
	file := filepath.Join(t.TempDir(), "a # and ?.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check("sqlite:"+file, "sqlite")
	t.Setenv("PGPASSWORD", "p")
	if u, err := Parse(pg); err != nil || strings.Contains(u.Secret(), ":p@") {
		t.Errorf("the environment's password is in the URL: %v", err)
	}
}

// TestSQLiteIsNotMade: a mistyped path is the store's to refuse, not the client's to make.
func TestSQLiteIsNotMade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.db")
	c, err := connect(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.DB().ExecContext(t.Context(), "create table t (a)"); err == nil {
		t.Error("a table was made in a file that is not there")
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file was made (%v)", err)
	}
}

func TestDefaultPort(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"": "127.0.0.1:3306", "h": "h:3306", "h:1": "h:1", "[::1]": "[::1]:3306", "[::1]:2": "[::1]:2", ":7": "127.0.0.1:7",
	} {
		if got := withPort(host, "3306"); got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
}
