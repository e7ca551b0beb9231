package membership

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// wants reports whether err is a refusal of this kind; "" is none.
func wants(err error, why string) bool {
	var r *refusedError
	if why == "" {
		return err == nil
	}
	return errors.As(err, &r) && r.why.String() == why
}

// TestVetPacket lets pass what memberlist sends, and refuses what is close to it.
func TestVetPacket(t *testing.T) {
	t.Parallel()
	good := someMessages()
	for i, b := range good {
		for what, b := range map[string][]byte{"": b, " with a checksum": checksum(b), " in a compound": compound(b), " in two": compound(alive("c@3"), compound(b))} {
			if err := vetPacket(b); err != nil {
				t.Errorf("message %d%s: %v", i, what, err)
			}
		}
		for n := range len(b) {
			if err := vetPacket(b[:n]); b[0] != msgUser && !wants(err, "malformed") {
				t.Errorf("message %d cut to %d of %d bytes: %v", i, n, len(b), err)
			}
		}
		if b[0] != msgUser && !wants(vetPacket(append(bytes.Clone(b), 0)), "malformed") {
			t.Errorf("message %d with a byte more is let through", i)
		}
	}
	if err := vetPacket(compound(good...)); err != nil {
		t.Error(err)
	}
	long := strings.Repeat("x", maxNode+1)
	noVersions := wireAlive{Node: "a@1", Addr: []byte{1, 2, 3, 4}}
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"nothing", nil, "malformed"},
		{"an empty part", compound(nil), "malformed"},
		{"a wrong checksum", append([]byte{msgChecksum, 1, 2, 3, 4}, good[0]...), "malformed"},
		{"no more than a checksum", checksum(nil), "malformed"},
		{"a checksum inside", compound(checksum(good[0])), "malformed"},
		{"compounds three deep", compound(compound(compound(good[0]))), "malformed"},
		{"a compound that lies", []byte{msgCompound, 255, 0, 1}, "malformed"},
		{"bytes behind a compound", append(compound(good[0]), 1), "malformed"},
		{"compressed", bomb(1), "malformed"},
		{"compressed inside", compound(good[0], bomb(1)), "malformed"},
		{"a push/pull", pushPull(wirePushPull{}, nil), "malformed"},
		{"an unknown type", []byte{messages, 0x80}, "malformed"},
		{"a long name", alive(long), "size"},
		{"a long source", encode(msgPing, wirePing{SourceNode: long}), "size"},
		{"no name", alive(""), "malformed"},
		{"no versions", encode(msgAlive, noVersions), "malformed"},
		{"an odd address", encode(msgPing, wirePing{SourceAddr: []byte{1, 2, 3}}), "malformed"},
		{"513 bytes of meta", encode(msgAlive, wireAlive{Node: "a@1", Addr: []byte{1, 2, 3, 4}, Vsn: wireVersions, Meta: make([]byte, 513)}), "size"},
		{"a negative number", encode(msgNack, struct{ SeqNo int }{-1}), "malformed"},
		{"a negative number of 4 bytes", encode(msgNack, struct{ SeqNo int }{-1 << 30}), "malformed"},
		{"a number of 5 bytes", encode(msgNack, struct{ SeqNo int }{1 << 32}), "malformed"},
		{"a list for bytes", encode(msgAck, struct{ Payload []int }{[]int{1, 2}}), "malformed"},
		{"a list for the whole", append([]byte{msgNack}, 0x91, 1), "malformed"},
		{"a map in an unknown field", encode(msgNack, struct{ SeqNo, X any }{1, map[string]int{}}), "malformed"},
		{"a long unknown field", encode(msgNack, struct{ SeqNo, X any }{1, make([]byte, maxUnknown+1)}), "size"},
		{"a name of 4 GB", append([]byte{msgPing, 0x81, 0xa4}, "Node\xdb\xff\xff\xff\xff"...), "size"},
		{"a field's name of 4 GB", []byte{msgPing, 0x81, 0xdb, 0xff, 0xff, 0xff, 0xff}, "size"},
		{"a map of 65,535", []byte{msgPing, 0xde, 0xff, 0xff}, "malformed"},
		{"a map of 4 billion", []byte{msgPing, 0xdf, 0xff, 0xff, 0xff, 0xff}, "malformed"},
		{"a field without a name", append([]byte{msgNack, 0x82}, "\xa0\x01\xa5SeqNo\x02"...), "malformed"}, // memberlist's decoder panics
		{"a field twice", append([]byte{msgNack, 0x82}, "\xa5SeqNo\x01\xa5SeqNo\x02"...), "malformed"},
		{"a number and flags that are new", encode(msgNack, struct{ SeqNo, X, Y, Z any }{1, 1 << 40, true, nil}), ""},
		{"a text that is new", encode(msgNack, struct{ SeqNo, X any }{1, "new"}), ""},
	} {
		if err := vetPacket(c.b); !wants(err, c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

// TestVetCall does the same for connections, read at once and byte by byte.
func TestVetCall(t *testing.T) {
	t.Parallel()
	var n counters
	for i, b := range someCalls() {
		for _, step := range []int{1, 7, 1 << 20} {
			if err := reader(t, &n, b, step).call(); err != nil {
				t.Errorf("call %d in steps of %d: %v", i, step, err)
			}
			for k := 1; k < len(b); k++ {
				if err := reader(t, &n, b[:k], step).call(); !wants(err, "malformed") {
					t.Errorf("call %d cut to %d bytes: %v", i, k, err)
				}
			}
		}
		if err := (&cursor{b: append(bytes.Clone(b), 0)}).call(); !wants(err, "malformed") {
			t.Errorf("call %d with a byte more: %v", i, err)
		}
	}
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"a million states", pushPull(wirePushPull{Nodes: 1 << 20}, nil), "size"},
		{"a state that is not there", pushPull(wirePushPull{Nodes: 2}, nil, state("a@1")), "malformed"},
		{"negative states", pushPull(wirePushPull{Nodes: -1}, nil), "malformed"},
		{"a state without a name", pushPull(wirePushPull{Nodes: 1}, nil, state("")), "malformed"},
		{"20 MB of user state", pushPull(wirePushPull{UserStateLen: 20 << 20}, nil), "size"},
		{"30 MB of user message", encode(msgUser, wireUser{UserMsgLen: 30 << 20}), "size"},
		{"a user message that is not there", encode(msgUser, wireUser{UserMsgLen: 1}), "malformed"},
		{"compressed", bomb(1), "malformed"},
		{"a packet's message", alive("a@1"), "malformed"},
		{"an answer", encode(msgAck, wireAck{}), "malformed"},
	} {
		if err := reader(t, &n, c.b, 4096).call(); !wants(err, c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
	for _, b := range [][]byte{encode(msgAck, wireAck{SeqNo: 9}), encode(msgError, wireError{"no"}), pushPull(wirePushPull{Nodes: 1}, nil, state("a@1"))} {
		if err := (&cursor{b: b}).answer(); err != nil {
			t.Error(err)
		}
	}
	if err := (&cursor{b: encode(msgPing, wirePing{})}).answer(); !wants(err, "malformed") {
		t.Errorf("a ping as an answer: %v", err)
	}
}

// TestLies announces gigabytes in each place that has a length; nothing is made room for but what has come.
func TestLies(t *testing.T) { // not parallel: it counts what the process allocates
	var n counters
	huge := []byte{0xdb, 0xff, 0xff, 0xff, 0xf0}
	states := pushPull(wirePushPull{Nodes: maxStates}, nil, state("a@1"))
	lies := [][]byte{
		append(append(bytes.Clone(states), 0x87, 0xa4), append([]byte("Name"), huge...)...),
		append(append(bytes.Clone(states), 0x87, 0xa4), append([]byte("Meta"), huge...)...),
		append(append(bytes.Clone(states), 0x87), huge...),
		encode(msgUser, struct{ UserMsgLen uint64 }{1 << 63}),
		encode(msgPushPull, struct{ Nodes, UserStateLen uint64 }{1 << 62, 1 << 62}),
	}
	for i, b := range lies {
		c := reader(t, &n, b, 1)
		if err := c.call(); !wants(err, "size") {
			t.Errorf("lie %d: %v", i, err)
		}
		if got := c.in.visitors.bytes; got > 4096 || cap(c.b) != got {
			t.Errorf("lie %d of %d bytes made a buffer of %d, counted as %d", i, len(b), cap(c.b), got)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		for _, b := range lies {
			_ = (&cursor{b: b}).call()
		}
	}
	runtime.ReadMemStats(&after)
	if d := after.TotalAlloc - before.TotalAlloc; d > 1<<20 {
		t.Errorf("%d bytes were allocated for lies", d)
	}
}

// TestVetSize holds that a message of maxMessage passes, and one byte more does not; and what such a message may hold.
func TestVetSize(t *testing.T) {
	t.Parallel()
	var n counters
	full := state(meta{boot: "0123456789abcdef"}.node())
	full.Meta, full.Addr, full.Port, full.Incarnation = make([]byte, 512), make([]byte, 16), 65535, 1<<32-1
	room := 0
	for size := len(pushPull(wirePushPull{Nodes: 1500}, nil)) + 300; size+len(encode(0, full)) <= maxMessage; room++ {
		size += len(encode(0, full)) - 1
	}
	t.Logf("a message holds %d members with all parts at their bounds", room)
	if room < 1500 {
		t.Errorf("%d members; 1,500 are promised", room)
	}
	all := make([]wireState, room)
	for i := range all {
		all[i] = full
	}
	with := func(user int) []byte {
		return pushPull(wirePushPull{Nodes: room, UserStateLen: user}, make([]byte, user), all...)
	}
	user := maxMessage - len(with(1000)) + 1000
	if b := with(user); len(b) != maxMessage {
		t.Fatalf("%d bytes", len(b))
	} else if err := reader(t, &n, b, 1<<16).call(); err != nil {
		t.Error(err)
	}
	if err := reader(t, &n, with(user+1), 1<<16).call(); !wants(err, "size") {
		t.Errorf("a byte more: %v", err)
	}
}

// reference decodes a packet as memberlist does, and says what the gate must not have let through.
func reference(b []byte) error {
	if len(b) > 5 && b[0] == msgChecksum {
		b = b[5:]
	}
	if len(b) == 0 {
		return errors.New("empty")
	}
	var err error
	rest := []byte(nil)
	bounded := true
	switch b[0] {
	case msgCompound:
		n := int(b[1])
		lens, body := b[2:2+2*n], b[2+2*n:]
		for i := range n {
			size := int(binary.BigEndian.Uint16(lens[2*i:]))
			if err := reference(body[:size]); err != nil {
				return err
			}
			body = body[size:]
		}
	case msgUser:
	case msgPing:
		var m wirePing
		rest, err = decode(b[1:], &m)
		bounded = len(m.Node) <= maxNode && len(m.SourceNode) <= maxNode
	case msgIndirectPing:
		var m wireIndirectPing
		rest, err = decode(b[1:], &m)
		bounded = len(m.Node) <= maxNode && len(m.SourceNode) <= maxNode && (len(m.Target) == 4 || len(m.Target) == 16)
	case msgAck:
		rest, err = decode(b[1:], &wireAck{})
	case msgNack:
		rest, err = decode(b[1:], &wireNack{})
	case msgSuspect, msgDead:
		var m wireAccused
		rest, err = decode(b[1:], &m)
		bounded = m.Node != "" && len(m.Node) <= maxNode && len(m.From) <= maxNode
	case msgAlive:
		var m wireAlive
		rest, err = decode(b[1:], &m)
		bounded = m.Node != "" && len(m.Node) <= maxNode && len(m.Meta) <= 512 && len(m.Vsn) == 6
	default:
		return fmt.Errorf("type %d", b[0])
	}
	if err == nil && (len(rest) > 0 || !bounded) {
		err = errors.New("not what it should be")
	}
	return err
}

// FuzzPacket: whatever comes, nothing panics, and what passes memberlist decodes, to the end and within the bounds.
func FuzzPacket(f *testing.F) {
	for _, b := range someMessages() {
		f.Add(b)
		f.Add(checksum(b))
	}
	f.Add(compound(someMessages()...))
	f.Add(bomb(1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if vetPacket(b) != nil {
			return
		}
		if err := reference(b); err != nil {
			t.Errorf("%x passed: %v", b, err)
		}
	})
}

// FuzzCall: the same for connections; how the bytes arrive makes no difference.
func FuzzCall(f *testing.F) {
	for _, b := range someCalls() {
		f.Add(b, byte(3))
	}
	f.Add(pushPull(wirePushPull{Nodes: 1 << 20, UserStateLen: 1 << 30}, nil), byte(1))
	f.Fuzz(func(t *testing.T, b []byte, step byte) {
		var n counters
		whole := (&cursor{b: b}).call()
		pieces := reader(t, &n, b, int(step)+1).call()
		if (whole == nil) != (pieces == nil) && len(b) > 0 && !strings.Contains(fmt.Sprint(whole), "follow its end") {
			t.Fatalf("%x: %v at once, %v in pieces", b, whole, pieces)
		}
		if whole != nil {
			return
		}
		if err := referenceCall(b); err != nil {
			t.Errorf("%x passed: %v", b, err)
		}
	})
}

// referenceCall reads a call as memberlist does.
func referenceCall(b []byte) error {
	t, b := b[0], b[1:]
	var err error
	switch t {
	case msgPing:
		b, err = decode(b, &wirePing{})
	case msgUser:
		var h wireUser
		if b, err = decode(b, &h); err == nil {
			b = b[h.UserMsgLen:]
		}
	case msgPushPull:
		var h wirePushPull
		b, err = decode(b, &h)
		for i := 0; err == nil && i < h.Nodes; i++ {
			var s wireState
			b, err = decode(b, &s)
			if s.Name == "" || len(s.Name) > maxNode || len(s.Meta) > 512 || len(s.Vsn) != 6 {
				return errors.New("not what it should be")
			}
		}
		if err == nil {
			b = b[h.UserStateLen:]
		}
	default:
		return fmt.Errorf("type %d", t)
	}
	if err == nil && len(b) > 0 {
		err = errors.New("bytes are left")
	}
	return err
}
