package membership

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/memberlist"
)

// meta is what a member says of itself in gossip. memberlist panics on more than 512 bytes, so every part is
// bounded; with all of them at their bounds the encoding takes 507 bytes:
//
//	format 1 · name 2+64 · boot 2+8 · born 2+8 · state 2+1 · reason 3+128 · layout 2+64 · version 2+32 · facts 152 ·
//	zone 2+32
//
// On the wire: the format's number, then fields of tag, length and bytes. A reader skips tags that it does not
// know, so a field can be added while replicas of both kinds run; a new format number is for what they must not
// share a cluster over.
type meta struct {
	name    string
	boot    string // 16 hexadecimal digits
	born    int64  // Unix nanoseconds, by the member's clock
	state   State
	reason  string
	layout  string
	version string
	facts   map[string]string
	zone    string
}

const (
	metaFormat = 1

	maxReason = 128
	maxLayout = 64
	maxFacts  = 8
	// maxFactBytes bounds all facts as encoded: 3 or 4 bytes more than key and value for each.
	maxFactBytes = 152
)

const (
	tagName byte = iota + 1
	tagBoot
	tagBorn
	tagState
	tagReason
	tagLayout
	tagVersion
	tagFact // one for each: length of the key, key, value
	tagZone
)

// node is the member's name in memberlist: that of the process, so that a restarted replica is a new member and never in
// conflict with what is remembered of its predecessor; and short, since each probe carries two.
func (m meta) node() string {
	boot, _ := hex.DecodeString(m.boot) // made by newBoot or by decodeMeta
	return base64.RawURLEncoding.EncodeToString(boot)
}

// newer reports whether m started after o: by time, then by boot id, so that all replicas agree.
func (m meta) newer(o meta) bool {
	if m.born != o.born {
		return m.born > o.born
	}
	return m.boot > o.boot
}

// check reports the first bound that m breaks.
func (m meta) check() error {
	switch {
	case !word.MatchString(m.name):
		return fmt.Errorf("name %.80q is not 1 to %d of A-Z a-z 0-9 . _ -", m.name, maxName)
	case m.state < Joining || m.state > Unfit:
		return fmt.Errorf("state %d is unknown", m.state)
	case len(m.reason) > maxReason:
		return fmt.Errorf("reason of %d bytes; at most %d", len(m.reason), maxReason)
	case clip(m.reason) != m.reason:
		return errors.New("reason with control characters, or no UTF-8")
	case len(m.layout) > maxLayout:
		return fmt.Errorf("layout of %d bytes; at most %d", len(m.layout), maxLayout)
	case printable(m.version, maxVersion) != nil:
		return fmt.Errorf("version %.80q: %w", m.version, printable(m.version, maxVersion))
	case printable(m.zone, maxZone) != nil:
		return fmt.Errorf("zone %.80q: %w", m.zone, printable(m.zone, maxZone))
	case len(m.facts) > maxFacts:
		return fmt.Errorf("%d facts; at most %d", len(m.facts), maxFacts)
	}
	size := 0
	for k, v := range m.facts {
		size += len(appendFact(nil, k, v))
	}
	if size > maxFactBytes {
		return fmt.Errorf("facts of %d bytes; at most %d with 3 or 4 more for each", size, maxFactBytes)
	}
	return nil
}

// encode returns the bytes of a checked meta; the same meta always gives the same bytes.
func (m meta) encode() []byte {
	b := []byte{metaFormat}
	b = appendField(b, tagName, []byte(m.name))
	boot, _ := hex.DecodeString(m.boot) // made by newBoot or by decodeMeta
	b = appendField(b, tagBoot, boot)
	b = appendField(b, tagBorn, binary.BigEndian.AppendUint64(nil, uint64(m.born)))
	b = appendField(b, tagState, []byte{byte(m.state)})
	b = appendText(b, tagReason, m.reason)
	b = appendText(b, tagLayout, m.layout)
	b = appendText(b, tagVersion, m.version)
	for _, k := range slices.Sorted(maps.Keys(m.facts)) {
		b = appendFact(b, k, m.facts[k])
	}
	return appendText(b, tagZone, m.zone)
}

func appendField(b []byte, tag byte, value []byte) []byte {
	b = append(b, tag)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// appendText leaves an empty text out.
func appendText(b []byte, tag byte, s string) []byte {
	if s == "" {
		return b
	}
	return appendField(b, tag, []byte(s))
}

func appendFact(b []byte, k, v string) []byte {
	value := binary.AppendUvarint(nil, uint64(len(k)))
	value = append(value, k...)
	return appendField(b, tagFact, append(value, v...))
}

var errCut = errors.New("meta ends early")

// decodeMeta reads what another process sent, which may be anything. The result shares no memory with b.
func decodeMeta(b []byte) (meta, error) {
	var m meta
	if len(b) == 0 || len(b) > memberlist.MetaMaxSize {
		return m, fmt.Errorf("meta of %d bytes", len(b))
	}
	if b[0] != metaFormat {
		return m, fmt.Errorf("meta format %d; this version reads %d", b[0], metaFormat)
	}
	seen := map[byte]bool{}
	for b = b[1:]; len(b) > 0; {
		tag := b[0]
		value, rest, err := cut(b[1:])
		if err != nil {
			return m, err
		}
		if seen[tag] && tag != tagFact {
			return m, fmt.Errorf("meta field %d twice", tag)
		}
		seen[tag] = true
		if err := m.set(tag, value); err != nil {
			return m, err
		}
		b = rest
	}
	if m.boot == "" || !seen[tagBorn] {
		return m, errors.New("meta without boot id or boot time")
	}
	return m, m.check()
}

// cut splits b after a length and as many bytes.
func cut(b []byte) (value, rest []byte, err error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b)-used) {
		return nil, nil, errCut
	}
	b = b[used:]
	return b[:n], b[n:], nil
}

// set stores one field.
func (m *meta) set(tag byte, value []byte) error {
	switch tag {
	case tagName:
		m.name = string(value)
	case tagBoot:
		if len(value) != bootBytes {
			return errCut
		}
		m.boot = hex.EncodeToString(value)
	case tagBorn:
		if len(value) != 8 {
			return errCut
		}
		m.born = int64(binary.BigEndian.Uint64(value))
	case tagState:
		if len(value) != 1 {
			return errCut
		}
		m.state = State(value[0])
	case tagReason:
		m.reason = string(value)
	case tagLayout:
		m.layout = string(value)
	case tagVersion:
		m.version = string(value)
	case tagFact:
		return m.setFact(value)
	case tagZone:
		m.zone = string(value)
	}
	return nil
}

func (m *meta) setFact(b []byte) error {
	k, v, err := cut(b)
	if err != nil {
		return err
	}
	if _, dup := m.facts[string(k)]; dup {
		return fmt.Errorf("meta fact %q twice", k)
	}
	if m.facts == nil {
		m.facts = map[string]string{}
	}
	m.facts[string(k)] = string(v)
	return nil
}

// clip makes of a reason what fits and can be shown: cut at a whole character, in one line, valid UTF-8. A reason is for
// people: better a short one than none.
func clip(reason string) string {
	reason = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(reason, "\uFFFD"))
	if len(reason) <= maxReason {
		return reason
	}
	n := maxReason - len("…")
	for n > 0 && !utf8.RuneStart(reason[n]) {
		n--
	}
	return reason[:n] + "…"
}
