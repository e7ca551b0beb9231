package storeurl

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Variable is the environment variable that has the URL where the flag has none.
const Variable = "BELFRY_STORE"

// Kind is a kind of store, by the name that results and messages have for it.
type Kind string

// The kinds. MariaDB is MySQL here, as it is to its clients.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
	MySQL    Kind = "mysql"
)

// forms is what a URL may be, for errors that refuse one.
const forms = "give sqlite:PATH, postgres://USER@HOST:PORT/DATABASE or mysql://USER@HOST:PORT/DATABASE"

// URL names a store. The zero URL names none.
type URL struct {
	kind     Kind
	path     string // sqlite
	user     string // servers, from here on
	password secret
	hosts    string // host:port, for Postgres also a list with commas
	database string
	params   url.Values
}

// secret is a text behind a pointer, which fmt does not follow where a URL is a field of what it prints.
type secret struct{ text *string }

func (s secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether u names no store.
func (u URL) IsZero() bool { return u.kind == "" }

// Kind is the kind of store that u names.
func (u URL) Kind() Kind { return u.kind }

// String is the URL without its password and parameters, for people to read.
func (u URL) String() string {
	switch {
	case u.IsZero():
		return ""
	case u.kind == SQLite:
		return "sqlite:" + u.path
	}
	return (&url.URL{Scheme: string(u.kind), User: u.userinfo(false), Host: u.hosts, Path: "/" + u.database}).String()
}

// GoString is String, so that no verb of fmt prints the password.
func (u URL) GoString() string { return u.String() }

// Secret is the whole URL as Parse takes it, with the password. It is for a pipe to a process that is to open the same
// store, and for nothing that is printed or kept.
func (u URL) Secret() string {
	if u.IsZero() || u.kind == SQLite {
		return u.String()
	}
	return (&url.URL{Scheme: string(u.kind), User: u.userinfo(true), Host: u.hosts, Path: "/" + u.database, RawQuery: u.params.Encode()}).String()
}

func (u URL) userinfo(withPassword bool) *url.Userinfo {
	switch {
	case withPassword && u.password.reveal() != "":
		return url.UserPassword(u.user, u.password.reveal())
	case u.user != "":
		return url.User(u.user)
	}
	return nil
}

// FromFlag returns the URL of a flag's value, or of the environment where that is empty; the zero URL where neither has
// one. A password in the flag is refused.
func FromFlag(value string) (URL, error) {
	if value == "" {
		u, err := Parse(os.Getenv(Variable))
		if err != nil {
			return URL{}, fmt.Errorf("%s: %w", Variable, err)
		}
		return u, nil
	}
	u, err := Parse(value)
	if err != nil {
		return URL{}, fmt.Errorf("--store: %w", err)
	}
	if u.password.reveal() != "" {
		return URL{}, fmt.Errorf("--store: it has a password, and all users of this host can read a program's arguments; %s", u.elsewhere())
	}
	return u, nil
}

// elsewhere says where a password belongs.
func (u URL) elsewhere() string {
	if u.kind == Postgres {
		return "put the URL into " + Variable + ", or the password into ~/.pgpass (or the file that PGPASSFILE names) or PGPASSWORD"
	}
	return "put the URL into " + Variable + ", or the password into MYSQL_PWD"
}

// Parse reads a URL; none of "". Its errors quote no part of the text that could be a misplaced password.
func Parse(text string) (URL, error) {
	if text == "" {
		return URL{}, nil
	}
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok {
		return URL{}, errors.New("it is no URL; " + forms)
	}
	switch strings.ToLower(scheme) {
	case "sqlite", "file":
		return parseSQLite(rest)
	case "postgres", "postgresql":
		return parseServer(Postgres, rest)
	case "mysql", "mariadb":
		return parseServer(MySQL, rest)
	}
	if strings.HasPrefix(rest, "//") { // else it may be user:password
		return URL{}, fmt.Errorf("unknown scheme %q; %s", scheme, forms)
	}
	return URL{}, errors.New("unknown scheme; " + forms)
}

// parseSQLite takes a path, relative or absolute. Behind // comes a host, which a file does not have.
func parseSQLite(path string) (URL, error) {
	if strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///") {
		return URL{}, errors.New("a SQLite file has no host; give sqlite:PATH, such as sqlite:belfry.db or sqlite:/var/lib/billing/belfry.db")
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return URL{}, errors.New("there is no path; give sqlite:PATH, such as sqlite:belfry.db")
	}
	return URL{kind: SQLite, path: filepath.Clean(path)}, nil
}

// parseServer takes what follows the scheme's colon: //user:password@hosts/database?parameters. It is not left to
// net/url, whose errors quote the text, and which knows no list of hosts.
func parseServer(kind Kind, rest string) (URL, error) {
	u := URL{kind: kind}
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok && rest != "" {
		return URL{}, fmt.Errorf("%s: is to be followed by //; %s", kind, forms)
	}
	if strings.Contains(rest, "#") {
		return URL{}, fmt.Errorf("%s: it has a #; write # as %%23 in a password", kind)
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, database, _ := strings.Cut(rest, "/")
	if strings.Contains(database+query, "@") { // so what was cut off here is a password's
		return URL{}, fmt.Errorf("%s: an @ stands behind the first / or ?; in a password write / as %%2F, ? as %%3F and @ as %%40", kind)
	}
	var err error
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		if err = u.setUser(authority[:i]); err != nil {
			return URL{}, err
		}
		authority = authority[i+1:]
	}
	if err := checkHosts(kind, authority); err != nil {
		return URL{}, err
	}
	u.hosts = strings.ReplaceAll(authority, "%25", "%") // before the zone of an IPv6 address, which URLs write so (RFC 6874)
	if u.database, err = url.PathUnescape(database); err != nil || strings.ContainsAny(u.database, "/\x00") {
		return URL{}, fmt.Errorf("%s: the database's name cannot be read; write a %% in it as %%25", kind)
	}
	return u, u.setParams(query)
}

func (u *URL) setUser(info string) error {
	user, password, _ := strings.Cut(info, ":")
	if strings.Contains(info, "@") {
		return fmt.Errorf("%s: it has two @; write the one in a name or password as %%40", u.kind)
	}
	var err error
	if u.user, err = url.PathUnescape(user); err == nil {
		password, err = url.PathUnescape(password)
	}
	u.password = secret{&password}
	if err != nil {
		return fmt.Errorf("%s: a %% in the name or password is followed by no two hexadecimal digits; write %% as %%25", u.kind)
	}
	return nil
}

// checkHosts refuses what may be a password in the wrong place before anybody quotes it.
func checkHosts(kind Kind, hosts string) error {
	list := strings.Split(hosts, ",")
	if len(list) > 1 && kind != Postgres {
		return fmt.Errorf("%s: there are several hosts; give one", kind)
	}
	for _, h := range list {
		if !hostPort.MatchString(h) {
			return fmt.Errorf("%s: a host or port cannot be read; write HOST:PORT, and a password before an @, its / as %%2F", kind)
		}
	}
	return nil
}

// hostPort is a name, an IPv4 address or an IPv6 address in brackets, with a port or without.
var hostPort = regexp.MustCompile(`^([\pL\pN._-]*|\[[0-9a-fA-F:.]+(%[\pL\pN._-]+)?\])(:[0-9]{1,5})?$`)

// The parameters that a URL may have. What is not on the list could change how the store's own statements run.
var params = map[Kind][]string{
	Postgres: {"application_name", "connect_timeout", "default_query_exec_mode", "host", "passfile", "pool_max_conns", "search_path",
		"sslcert", "sslkey", "sslmode", "sslnegotiation", "sslrootcert", "target_session_attrs"},
	MySQL: {"socket", "timeout", "tls", "tls-ca"},
}

func (u *URL) setParams(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("%s: the parameters behind ? cannot be read; write NAME=VALUE with & between", u.kind)
	}
	for name, list := range values {
		switch {
		case strings.Contains(name, "password") || strings.Contains(name, "pwd"):
			return fmt.Errorf("%s: parameter %q is not taken; %s", u.kind, name, u.elsewhere())
		case !slices.Contains(params[u.kind], name):
			return fmt.Errorf("%s: unknown parameter %q; those known are %s", u.kind, name, strings.Join(params[u.kind], ", "))
		case len(list) > 1:
			return fmt.Errorf("%s: parameter %q is given twice", u.kind, name)
		}
	}
	u.params = values
	return nil
}
