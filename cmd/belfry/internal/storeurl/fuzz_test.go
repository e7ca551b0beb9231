package storeurl

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// FuzzParse gives any text, and any password, to what reads the URL of a store (F18): what is taken is told whole to a process that opens
// the same store, and prints no password; nor does what is refused.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "sqlite:belfry.db", "file:///var/lib/belfry.db", "postgres://u@[::1%eth0]:5432,b/d?sslmode=require", "mysql://h/d?tls=true",
		"mariadb:", "mysql://u%40:@h", "postgres://a,b:1/%25?host=/run", "sqlite://h/x", "redis://h", "sqlite:\x00", "postgres://h/d?sslmode=a&sslmode=b",
	} {
		f.Add(text, "se%cret/?#@:")
	}
	f.Fuzz(func(t *testing.T, text, password string) {
		if u, err := Parse(text); err == nil {
			again, err := Parse(u.Secret())
			if err != nil || !reflect.DeepEqual(again, u) {
				t.Fatalf("%q was read as %q, and that as %q: %v", text, u.Secret(), again.Secret(), err)
			}
		}
		const before = "postgres://u:"
		secret := "hunter2-" + password
		u, err := Parse(before + url.PathEscape(secret) + "@h/d")
		if err == nil && u.password.reveal() != secret {
			t.Fatalf("the password %q was read as %q", secret, u.password.reveal())
		}
		_, raw := Parse(before + secret + "@h/d") // as it is copied from somewhere
		for _, said := range []string{fmt.Sprintf("%v %+v %#v %s", u, u, u, u), fmt.Sprint(err), fmt.Sprint(raw)} {
			if strings.Contains(said, "hunter2") {
				t.Fatalf("the password is in %q", said)
			}
		}
	})
}
