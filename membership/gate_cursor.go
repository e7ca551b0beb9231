package membership

import "encoding/binary"

// cursor walks through a message in memberlist's encoding (msgpack) and checks it against what replicas send, without
// building anything of it: the real decoder, memberlist's, is let at it only when every length in it is known to be
// true and small. It allows less than that decoder does: flat maps with known bounds, each field once.
type cursor struct {
	b   []byte
	at  int
	in  *intake // where more of b comes from; nil: b is all there is
	got [maxFields]uint64
}

const (
	maxFields  = 16
	maxUnknown = 512 // bytes of a field that this version does not know
)

type kind byte

const (
	kindNumber kind = iota // 0 to most
	kindCount              // the same; more is too large, not malformed
	kindFlag
	kindBytes    // or text, of at most as many bytes
	kindIP       // 4 or 16 bytes
	kindVersions // 6 bytes, indexed unseen by memberlist
)

// field is one that a message may have.
type field struct {
	name string
	kind kind
	most uint64
	must bool // be there, and be neither empty nor 0
}

// need makes sure that n bytes lie before the cursor.
func (c *cursor) need(n int) error {
	for len(c.b)-c.at < n {
		if c.in == nil {
			return refuse(RefusedMalformed, "it ends early")
		}
		b, err := c.in.more(c.b, c.at+n)
		c.b = b
		if err != nil {
			return err
		}
	}
	return nil
}

// take returns the next n bytes, valid until more are needed.
func (c *cursor) take(n int) ([]byte, error) {
	if err := c.need(n); err != nil {
		return nil, err
	}
	c.at += n
	return c.b[c.at-n : c.at], nil
}

func (c *cursor) byte() (byte, error) {
	b, err := c.take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// end demands that nothing follows.
func (c *cursor) end() error {
	if n := len(c.b) - c.at; n > 0 {
		return refuse(RefusedMalformed, "%d bytes follow its end", n)
	}
	return nil
}

// uint reads a big-endian number of 1, 2, 4 or 8 bytes.
func (c *cursor) uint(size int) (uint64, error) {
	b, err := c.take(size)
	if err != nil {
		return 0, err
	}
	switch size {
	case 1:
		return uint64(b[0]), nil
	case 2:
		return uint64(binary.BigEndian.Uint16(b)), nil
	case 4:
		return uint64(binary.BigEndian.Uint32(b)), nil
	}
	return binary.BigEndian.Uint64(b), nil
}

// object reads one map of these fields. Afterwards got has their numbers, and the lengths of what is bytes.
func (c *cursor) object(fields []field) error {
	n, err := c.mapLen()
	if err != nil {
		return err
	}
	clear(c.got[:])
	seen := 0
	for range n {
		i, err := c.fieldName(fields)
		if err != nil {
			return err
		}
		if i < 0 {
			if err := c.unknown(); err != nil {
				return err
			}
			continue
		}
		if seen&(1<<i) != 0 {
			return refuse(RefusedMalformed, "field %s is there twice", fields[i].name)
		}
		seen |= 1 << i
		if err := c.value(i, fields[i]); err != nil {
			return err
		}
	}
	for i, f := range fields {
		if f.must && c.got[i] == 0 {
			return refuse(RefusedMalformed, "field %s is missing or empty", f.name)
		}
	}
	return nil
}

func (c *cursor) mapLen() (uint64, error) {
	b, err := c.byte()
	if err != nil {
		return 0, err
	}
	n := uint64(b & 0x0f)
	switch {
	case b&0xf0 == 0x80:
	case b == 0xde:
		if n, err = c.uint(2); err != nil {
			return 0, err
		}
	default:
		return 0, refuse(RefusedMalformed, "byte %#x where a map begins", b)
	}
	if n > maxFields {
		return 0, refuse(RefusedMalformed, "a map of %d fields", n)
	}
	return n, nil
}

// fieldName reads a field's name, and returns its index or -1.
func (c *cursor) fieldName(fields []field) (int, error) {
	b, err := c.byte()
	if err != nil {
		return 0, err
	}
	n, err := c.textLen(b)
	if err != nil {
		return 0, err
	}
	switch {
	case n == 0:
		return 0, refuse(RefusedMalformed, "a field without a name")
	case n > maxUnknown:
		return 0, refuse(RefusedSize, "a field's name of %d bytes", n)
	}
	name, err := c.take(int(n))
	if err != nil {
		return 0, err
	}
	for i := range fields {
		if string(name) == fields[i].name {
			return i, nil
		}
	}
	return -1, nil
}

// textLen returns the length of the text or bytes that begin with b.
func (c *cursor) textLen(b byte) (uint64, error) {
	switch {
	case b&0xe0 == 0xa0:
		return uint64(b & 0x1f), nil
	case b == 0xd9 || b == 0xc4:
		return c.uint(1)
	case b == 0xda || b == 0xc5:
		return c.uint(2)
	case b == 0xdb || b == 0xc6:
		return c.uint(4)
	}
	return 0, refuse(RefusedMalformed, "byte %#x where a text begins", b)
}

// number returns the number that begins with b.
func (c *cursor) number(b byte) (uint64, error) {
	switch {
	case b < 0x80:
		return uint64(b), nil
	case b >= 0xcc && b <= 0xcf:
		return c.uint(1 << (b - 0xcc))
	case b >= 0xd0 && b <= 0xd3:
		size := 1 << (b - 0xd0)
		n, err := c.uint(size)
		if err == nil && n>>(8*size-1) != 0 {
			err = refuse(RefusedMalformed, "a negative number")
		}
		return n, err
	}
	return 0, refuse(RefusedMalformed, "byte %#x where a number begins", b)
}

const nothing = 0xc0 // msgpack's nil: zero, for memberlist

// value reads the value of fields[i] into got[i].
func (c *cursor) value(i int, f field) error {
	b, err := c.byte()
	if err != nil || b == nothing {
		return err
	}
	var n uint64
	switch f.kind {
	case kindFlag:
		if b != 0xc2 && b != 0xc3 {
			return refuse(RefusedMalformed, "byte %#x in field %s", b, f.name)
		}
	case kindNumber, kindCount:
		n, err = c.number(b)
	default:
		n, err = c.textLen(b)
	}
	if err != nil {
		return err
	}
	if err := f.check(n); err != nil {
		return err
	}
	c.got[i] = n
	if f.kind >= kindBytes {
		_, err = c.take(int(n))
	}
	return err
}

// check bounds a number or length.
func (f field) check(n uint64) error {
	switch {
	case f.kind == kindIP && n != 4 && n != 16, f.kind == kindVersions && n != 6:
		return refuse(RefusedMalformed, "%d bytes in field %s", n, f.name)
	case f.kind == kindNumber && n > f.most:
		return refuse(RefusedMalformed, "%d in field %s", n, f.name)
	case f.kind == kindCount && n > f.most:
		return refuse(RefusedSize, "%d in field %s; at most %d", n, f.name, f.most)
	case f.kind == kindBytes && n > f.most:
		return refuse(RefusedSize, "%d bytes in field %s; at most %d", n, f.name, f.most)
	}
	return nil
}

// unknown passes over the value of a field that a later version may have added: a number, flag, or short text.
func (c *cursor) unknown() error {
	b, err := c.byte()
	if err != nil {
		return err
	}
	if b == nothing || b == 0xc2 || b == 0xc3 {
		return nil
	}
	if b < 0x80 || b >= 0xcc && b <= 0xd3 {
		_, err := c.number(b)
		return err
	}
	n, err := c.textLen(b)
	if err != nil {
		return err
	}
	if n > maxUnknown {
		return refuse(RefusedSize, "an unknown field of %d bytes", n)
	}
	_, err = c.take(int(n))
	return err
}
