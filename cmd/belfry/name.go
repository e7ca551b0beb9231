package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// keyFlags name a key, as text or, where it is not, as the digits of its bytes.
type keyFlags struct {
	text, hex string
	set       *pflag.FlagSet
}

func (k *keyFlags) define(set *pflag.FlagSet, what string) {
	k.set = set
	set.StringVar(&k.text, "key", "", what)
	set.StringVar(&k.hex, "key-hex", "", "the same by its bytes, in hexadecimal `digits`")
}

// read returns the key; empty where none is named.
func (k *keyFlags) read() (string, error) {
	text, digits := k.set.Changed("key"), k.set.Changed("key-hex")
	key, name := k.text, "--key"
	switch {
	case text && digits:
		return "", errors.New("--key and --key-hex name the same; give one of them")
	case digits:
		b, err := hex.DecodeString(k.hex)
		if err != nil {
			return "", fmt.Errorf("--key-hex %.80q: give two hexadecimal digits for each byte, such as 63002d31", k.hex)
		}
		key, name = string(b), "--key-hex"
	case !text:
		return "", nil
	}
	if err := jobs.ValidateKey(key); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

// occurrenceFlags name an occurrence, beside the job.
type occurrenceFlags struct {
	key          keyFlags
	due, request string
}

func (f *occurrenceFlags) define(set *pflag.FlagSet) {
	set.StringVar(&f.due, "due", "", "the `instant` it is due, such as 2026-10-01T04:00:00Z")
	f.key.define(set, "its key, where the job has keys")
	set.StringVar(&f.request, "request", "", "its request, where it was asked for by hand")
}

// read returns the occurrence of the job that is the only argument.
func (f *occurrenceFlags) read(args []string) (id idempotency.ID, err error) {
	if id.Job, err = oneJob(args); err != nil {
		return id, err
	}
	if id.Key, err = f.key.read(); err != nil {
		return id, err
	}
	if f.due == "" {
		return id, errors.New("no due is named; give --due, such as --due 2026-10-01T04:00:00Z; belfry runs --job " + id.Job + " lists them")
	}
	if id.Due, err = instantOf("--due", f.due); err != nil {
		return id, err
	}
	if id.Due.Nanosecond() != 0 {
		return id, fmt.Errorf("--due %.80q: a due is a whole second", f.due)
	}
	if f.request != "" {
		if err := jobs.ValidateRequest(f.request); err != nil {
			return id, fmt.Errorf("--request: %w", err)
		}
	}
	id.Request = f.request
	return id, nil
}

// noArguments refuses what belongs behind a flag.
func noArguments(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("argument %.80q: it takes flags alone; see its --help", args[0])
	}
	return nil
}

// oneJob returns the job that is the only argument.
func oneJob(args []string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("%d arguments: give the name of one job", len(args))
	}
	err := jobs.ValidateName(args[0])
	if err != nil && runID.MatchString(args[0]) {
		err = fmt.Errorf("%.80q is the ID of a run; give the name of its job, and the rest by --key, --due and --namespace", args[0])
	}
	return args[0], err
}

// runID is what a run's ID looks like in a log; see jobs.Occurrence.ID.
var runID = regexp.MustCompile(`^[A-Za-z0-9._-]+:[A-Za-z0-9._-]+.*@`)

// instantOf reads an instant as RFC 3339 has it, in UTC: with a zone, so that it means the same to everybody.
func instantOf(flag, text string) (t time.Time, err error) {
	if !rfc3339.MatchString(text) || t.UnmarshalText([]byte(text)) != nil { // which alone would take T4:00 and a comma, too
		return t, fmt.Errorf("%s %.80q: write the instant with its zone, as 2026-10-01T04:00:00Z or 2026-10-01T06:00:00+02:00", flag, text)
	}
	return t.UTC(), nil
}

var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// plainArgument is what every shell takes as one word as it is.
var plainArgument = regexp.MustCompile(`^[A-Za-z0-9._~@:/+,][A-Za-z0-9._~@:/+,=-]*$`)

// arguments are those that name an occurrence, ready for a shell.
func arguments(id idempotency.ID) string {
	var b strings.Builder
	b.WriteString(id.Job)
	switch {
	case id.Key == "":
	case plainArgument.MatchString(id.Key):
		b.WriteString(" --key " + id.Key)
	default:
		b.WriteString(" --key-hex " + hex.EncodeToString([]byte(id.Key)))
	}
	b.WriteString(" --due " + show.Instant(id.Due))
	if id.Request != "" {
		b.WriteString(" --request " + id.Request)
	}
	return b.String()
}

// ownKey is how tables show a key: not at all where it is the name of a job without keys.
func ownKey(id idempotency.ID, keyed bool) string {
	if id.Key == "" || id.Key == id.Job && !keyed {
		return ""
	}
	return show.Word(id.Key)
}
