package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Bounds of an identity's parts, in bytes.
const (
	MaxName    = 64  // a namespace or job name
	MaxKey     = 255 // a key
	MaxRequest = 36  // a request id
	maxID      = 255
)

// Occurrence is one due of one key: a plain value that a test may build. Its
// identity is Namespace, Job, Key, Due and Request; the rest describes this
// attempt.
type Occurrence struct {
	// Namespace keeps clusters that share a store apart.
	Namespace string
	// Job is the job's name; Key is what the run is for, the job's name where
	// the job has no keys.
	Job, Key string
	// Due is the instant the schedule names: UTC, whole seconds, never "now".
	Due time.Time
	// Request is the id of a run asked for by hand; "" for a scheduled one.
	Request string
	// Attempt is 1 for the first try. Only a handler's own end raises it; a
	// crash or a hand-over does not.
	Attempt int
	// Fence rises with every claim of this key: a receiver that remembers the
	// highest one it has seen can refuse a holder that was overtaken. 0 for
	// efficiency jobs, which are not claimed.
	Fence int64
	// Term is the leader's, of a run that it claimed, or started, as the leader: see Leader. It rises with each leader of one
	// elector. 0 for all others.
	Term int64
	// Payload is the job's. Do not change it: all runs share its bytes.
	Payload []byte
}

// ID is the occurrence's name, the same for every attempt and on every replica:
//
//	namespace:job/key@2026-10-01T04:00:00Z
//
// with key bytes outside [A-Za-z0-9._~-] percent-encoded, and "#request"
// appended for a run by hand. It is ASCII and, where the parts are within their
// bounds, at most 255 bytes: where it would be longer the key part is the
// hexadecimal SHA-256 of the key. So it is for a key that itself looks like such
// a hash, or the two could meet. The form is frozen; nothing parses it.
func (o Occurrence) ID() string {
	id := o.id(escape(nil, o.Key))
	if len(id) > maxID || looksHashed(o.Key) {
		sum := sha256.Sum256([]byte(o.Key))
		id = o.id(hex.AppendEncode(nil, sum[:]))
	}
	return string(id)
}

// IdempotencyKey is the ID, under the name that receivers such as payment
// providers use for it: send it with the effect, and a repeated run is
// recognised by them.
func (o Occurrence) IdempotencyKey() string { return o.ID() }

func (o Occurrence) id(key []byte) []byte {
	b := make([]byte, 0, maxID)
	b = append(escape(b, o.Namespace), ':')
	b = append(escape(b, o.Job), '/')
	b = append(append(b, key...), '@')
	b = o.Due.UTC().AppendFormat(b, "2006-01-02T15:04:05Z")
	if o.Request != "" {
		b = escape(append(b, '#'), o.Request)
	}
	return b
}

// escape appends s percent-encoded. Names within their bounds pass unchanged, so
// only a value built outside them, in a test perhaps, ever shows the encoding.
func escape(b []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		c := s[i]
		if nameByte(c) || c == '~' {
			b = append(b, c)
			continue
		}
		b = append(b, '%', digits[c>>4], digits[c&15])
	}
	return b
}

func looksHashed(key string) bool {
	if len(key) != 2*sha256.Size {
		return false
	}
	for i := range len(key) {
		if c := key[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ValidateName checks the name of a namespace or a job: [A-Za-z0-9._-], 1 to
// MaxName bytes.
func ValidateName(name string) error { return prefix(checkName("name", name, MaxName)) }

// ValidateRequest checks the id of a run asked for by hand: [A-Za-z0-9._-], 1 to
// MaxRequest bytes; a UUID fits.
func ValidateRequest(request string) error {
	return prefix(checkName("request", request, MaxRequest))
}

// ValidateKey checks a key: 1 to MaxKey bytes, any bytes at all. Case, blanks,
// accents and NUL tell keys apart.
func ValidateKey(key string) error { return prefix(checkKey(key)) }

func prefix(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("jobs: %w", err)
}

func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("key is empty; a key has 1 to 255 bytes")
	case len(key) > MaxKey:
		return fmt.Errorf("key %.32q…: %d bytes are too long; use at most %d, or a hash of it", key, len(key), MaxKey)
	}
	return nil
}

func checkName(what, name string, limit int) error {
	if name == "" {
		return fmt.Errorf("%s is empty; give it 1 to %d of A-Z a-z 0-9 . _ -", what, limit)
	}
	if len(name) > limit {
		return fmt.Errorf("%s %.80q: %d bytes are too long; use at most %d", what, name, len(name), limit)
	}
	for i := range len(name) {
		if !nameByte(name[i]) {
			return fmt.Errorf("%s %q: byte %q is not allowed; use A-Z a-z 0-9 . _ -", what, name, name[i:i+1])
		}
	}
	return nil
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '.' || c == '_' || c == '-'
}
