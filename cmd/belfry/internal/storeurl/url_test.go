package storeurl

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want, secret string }{
		{"", "", ""},
		{"sqlite:belfry.db", "sqlite:belfry.db", ""},
		{"sqlite:/var/lib/a b?.db", "sqlite:/var/lib/a b?.db", ""},
		{"sqlite:///var/lib/a.db", "sqlite:/var/lib/a.db", ""},
		{"postgres://", "postgres:///", ""},
		{"postgres:", "postgres:///", ""},
		{"postgresql://u@h/db", "postgres://u@h/db", ""},
		{"postgres://u:p@h:5432/db?sslmode=disable", "postgres://u@h:5432/db", "postgres://u:p@h:5432/db?sslmode=disable"},
		{"postgres://u:p:w%40%2F@h1:1,h2:2/db", "postgres://u@h1:1,h2:2/db", "postgres://u:p%3Aw%40%2F@h1:1,h2:2/db"},
		{"postgres:///db?host=/run/postgresql", "postgres:///db", "postgres:///db?host=%2Frun%2Fpostgresql"},
		{"mysql://root@[::1]:3306/db?tls=true", "mysql://root@[::1]:3306/db", "mysql://root@[::1]:3306/db?tls=true"},
		{"MariaDB://root@db.example.com/db", "mysql://root@db.example.com/db", ""},
	} {
		u, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if c.secret == "" {
			c.secret = c.want
		}
		if u.String() != c.want || u.Secret() != c.secret {
			t.Errorf("%s: got %s and %s, want %s and %s", c.text, u, u.Secret(), c.want, c.secret)
		}
		if again, err := Parse(u.Secret()); err != nil || again.Secret() != u.Secret() {
			t.Errorf("%s: read back: %s (%v)", c.text, again.Secret(), err)
		}
	}
}

// TestRefuse: each error says what to do, and none quotes the password, wherever it was put (S12).
func TestRefuse(t *testing.T) {
	t.Parallel()
	const canary = "c4nary"
	for _, c := range []struct{ text, want string }{
		{canary, "it is no URL"},
		{"user:" + canary, "unknown scheme; give sqlite:PATH"},
		{"redis://h", `unknown scheme "redis"; give sqlite:PATH`},
		{"sqlite:", "there is no path"},
		{"sqlite://host/file", "a SQLite file has no host"},
		{"postgres:u:c4nary@h/db", "is to be followed by //"},
		{"postgres://u:c4nary#1@h/db", "write # as %23"},
		{"postgres://u:c4nary/x@h/db", "write / as %2F"},
		{"postgres://u:12c4nary?x@h/db", "? as %3F"},
		{"postgres://u:c4nary/x", "a host or port cannot be read"},
		{"postgres://u:c4n@ary@h/db", "write the one in a name or password as %40"},
		{"postgres://u:c4nary%zz@h/db", "write % as %25"},
		{"postgres://u@h:c4nary/db", "a host or port cannot be read"},
		{"postgres://u@h/db?password=c4nary", `parameter "password" is not taken; put the URL into BELFRY_STORE`},
		{"postgres://u@h/db?sslpassword=c4nary", `parameter "sslpassword" is not taken`},
		{"postgres://u@h/db?options=-c", `unknown parameter "options"; those known are application_name`},
		{"postgres://u@h/db?sslmode=a&sslmode=b", `parameter "sslmode" is given twice`},
		{"postgres://u@h/db/other", "the database's name cannot be read"},
		{"mysql://u@h,h/db", "several hosts; give one"},
		{"mysql://u@h/db?parseTime=true", `unknown parameter "parseTime"; those known are socket, timeout, tls, tls-ca`},
		{"mysql://u@h/db?pwd=c4nary", "put the URL into BELFRY_STORE, or the password into MYSQL_PWD"},
		{"mysql://u@h/db?tls=%zz", "the parameters behind ? cannot be read"},
	} {
		u, err := Parse(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error that says %q", c.text, err, c.want)
		} else if strings.Contains(err.Error()+fmt.Sprintf("%v %+v %#v", u, u, u), "c4n") {
			t.Errorf("%s: the error has the password: %v", c.text, err)
		}
	}
}

func TestPasswordInFlag(t *testing.T) {
	t.Setenv(Variable, "postgres://u:c4nary@env/db")
	for text, want := range map[string]string{
		"postgres://u:c4nary@h/db": "PGPASSFILE", "mysql://u:c4nary@h/db": "MYSQL_PWD",
	} {
		_, err := FromFlag(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "c4nary") {
			t.Errorf("got %v", err)
		}
	}
	for flag, want := range map[string]string{
		"": "postgres://u:c4nary@env/db", "postgres://u@h/db": "postgres://u@h/db", "postgres://u:@h/db": "postgres://u@h/db",
	} {
		if u, err := FromFlag(flag); err != nil || u.Secret() != want {
			t.Errorf("%q: got %s, %v", flag, u.Secret(), err)
		}
	}
	t.Setenv(Variable, "postgres://u:c4nary%@h")
	if _, err := FromFlag(""); err == nil || !strings.HasPrefix(err.Error(), Variable+": ") || strings.Contains(err.Error(), "c4nary") {
		t.Errorf("got %v", err)
	}
}

// TestPasswordNeverPrinted throws passwords of any characters, escaped and not, at Parse: whether it takes them or not,
// nothing that may be printed has them.
func TestPasswordNeverPrinted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// The marks stay together whatever a parser cuts at what is between them.
		middle := rapid.StringOf(rapid.SampledFrom([]rune(`@:/?#%&=[],;'"\ +0aZä`))).Draw(t, "middle")
		scheme := rapid.SampledFrom([]string{"postgres", "mysql"}).Draw(t, "scheme")
		tails := []string{"@h/db", "@h:1/db?timeout=1s", "@h", "@", "", "/db", "?sslmode=disable"}
		if strings.Contains(middle, "@") { // without another @, what follows this one is a host as good as any
			tails = tails[:4]
		}
		tail := rapid.SampledFrom(tails).Draw(t, "tail")
		u, err := Parse(scheme + "://u:QQQQ" + middle + "QQQQ" + tail)
		hidden := struct{ u URL }{u} // fmt calls no method of what is in here
		if said := fmt.Sprintf("%v|%v|%+v|%#v|%q|%+v|%#v", err, u, u, u, u, hidden, hidden); strings.Contains(said, "QQQQ") {
			t.Errorf("said: %s", said)
		}
	})
}
