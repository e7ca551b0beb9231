package membership

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/hashicorp/memberlist"
)

// What replicas send is far below these bounds, and memberlist's own (20 MiB, a million states, 40 MiB decompressed)
// are far above what a small process can bear from several connections at once.
const (
	maxPacket  = 4 << 10 // memberlist fills packets up to 1,400 bytes
	maxMessage = 1 << 20 // of a connection: more than 1,500 members with every part of their meta at its bound
	maxStates  = 4096    // members and recent dead in one message
	maxPayload = 64 << 10
	maxNode    = 128 // bytes of a member's name in memberlist; ours have 11
	maxText    = 1 << 10
	maxNest    = 2 // packets in packets; memberlist sends one level
)

// memberlist's message types.
const (
	msgPing byte = iota
	msgIndirectPing
	msgAck
	msgSuspect
	msgAlive
	msgDead
	msgPushPull
	msgCompound
	msgUser
	msgCompress
	msgEncrypt
	msgNack
	msgChecksum
	msgError
	messages

	msgLabel byte = 244
)

// The fields of memberlist's messages.
var (
	pingFields = []field{
		{name: "SeqNo", most: math.MaxUint32},
		{name: "Node", kind: kindBytes, most: maxNode},
		{name: "SourceAddr", kind: kindIP},
		{name: "SourcePort", most: math.MaxUint16},
		{name: "SourceNode", kind: kindBytes, most: maxNode},
	}
	indirectPingFields = []field{
		{name: "SeqNo", most: math.MaxUint32},
		{name: "Target", kind: kindIP, must: true},
		{name: "Port", most: math.MaxUint16},
		{name: "Node", kind: kindBytes, most: maxNode},
		{name: "Nack", kind: kindFlag},
		{name: "SourceAddr", kind: kindIP},
		{name: "SourcePort", most: math.MaxUint16},
		{name: "SourceNode", kind: kindBytes, most: maxNode},
	}
	ackFields = []field{
		{name: "SeqNo", most: math.MaxUint32},
		{name: "Payload", kind: kindBytes, most: maxText},
	}
	nackFields = []field{
		{name: "SeqNo", most: math.MaxUint32},
	}
	accusedFields = []field{
		{name: "Node", kind: kindBytes, most: maxNode, must: true},
		{name: "From", kind: kindBytes, most: maxNode},
		{name: "Incarnation", most: math.MaxUint32},
	}
	aliveFields = []field{
		{name: "Node", kind: kindBytes, most: maxNode, must: true},
		{name: "Addr", kind: kindIP, must: true},
		{name: "Port", most: math.MaxUint16},
		{name: "Meta", kind: kindBytes, most: memberlist.MetaMaxSize},
		{name: "Incarnation", most: math.MaxUint32},
		{name: "Vsn", kind: kindVersions, must: true},
	}
	stateFields = []field{
		{name: "Name", kind: kindBytes, most: maxNode, must: true},
		{name: "Addr", kind: kindIP, must: true},
		{name: "Port", most: math.MaxUint16},
		{name: "Meta", kind: kindBytes, most: memberlist.MetaMaxSize},
		{name: "Incarnation", most: math.MaxUint32},
		{name: "State", most: math.MaxUint8},
		{name: "Vsn", kind: kindVersions, must: true},
	}
	pushPullFields = []field{
		{name: "Nodes", kind: kindCount, most: maxStates},
		{name: "UserStateLen", kind: kindCount, most: maxPayload},
		{name: "Join", kind: kindFlag},
	}
	userFields = []field{
		{name: "UserMsgLen", kind: kindCount, most: maxPayload},
	}
	errorFields = []field{
		{name: "Error", kind: kindBytes, most: maxText},
	}

	// packetFields are of what may be in a packet, by type.
	packetFields = [messages][]field{
		msgPing:         pingFields,
		msgIndirectPing: indirectPingFields,
		msgAck:          ackFields,
		msgNack:         nackFields,
		msgSuspect:      accusedFields,
		msgAlive:        aliveFields,
		msgDead:         accusedFields,
	}
	// callFields are of what may begin a connection, answerFields of what may be answered.
	callFields   = [messages][]field{msgPushPull: pushPullFields, msgPing: pingFields, msgUser: userFields}
	answerFields = [messages][]field{msgPushPull: pushPullFields, msgAck: ackFields, msgError: errorFields}
)

// label reads the rest of a label, which memberlist puts before packets and calls.
func (c *cursor) label() ([]byte, error) {
	n, err := c.byte()
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, refuse(RefusedMalformed, "its label is empty")
	}
	return c.take(int(n))
}

// vetPacket checks the plaintext of a packet.
func vetPacket(b []byte) error {
	if len(b) > 5 && b[0] == msgChecksum {
		if crc32.ChecksumIEEE(b[5:]) != binary.BigEndian.Uint32(b[1:5]) {
			return refuse(RefusedMalformed, "its checksum is wrong")
		}
		b = b[5:]
	}
	return vetPart(b, maxNest)
}

// vetPart checks one message of a packet, which may hold others.
func vetPart(b []byte, nest int) error {
	if len(b) == 0 {
		return refuse(RefusedMalformed, "it is empty")
	}
	switch t := b[0]; {
	case t == msgUser:
		return nil
	case t == msgCompound:
		return vetParts(b[1:], nest-1)
	case t == msgCompress:
		return refuse(RefusedMalformed, "it is compressed, which no replica does")
	case t >= messages || packetFields[t] == nil:
		return refuse(RefusedMalformed, "a message of type %d in a packet", t)
	}
	c := cursor{b: b, at: 1}
	if err := c.object(packetFields[b[0]]); err != nil {
		return err
	}
	return c.end()
}

// vetParts checks a number of messages, their lengths before them.
func vetParts(b []byte, nest int) error {
	if nest < 0 {
		return refuse(RefusedMalformed, "packets in packets in packets")
	}
	if len(b) == 0 || len(b) < 1+2*int(b[0]) {
		return refuse(RefusedMalformed, "it ends early")
	}
	n := int(b[0])
	lens, rest := b[1:1+2*n], b[1+2*n:]
	for ; len(lens) > 0; lens = lens[2:] {
		size := int(binary.BigEndian.Uint16(lens))
		if size > len(rest) {
			return refuse(RefusedMalformed, "it ends early")
		}
		if err := vetPart(rest[:size], nest); err != nil {
			return err
		}
		rest = rest[size:]
	}
	if len(rest) > 0 {
		return refuse(RefusedMalformed, "%d bytes follow its end", len(rest))
	}
	return nil
}

// call checks the plaintext of a message that begins a connection.
func (c *cursor) call() error { return c.message(&callFields) }

// answer checks the plaintext of what is answered on a connection.
func (c *cursor) answer() error { return c.message(&answerFields) }

// message checks one whole message of these types.
func (c *cursor) message(of *[messages][]field) error {
	t, err := c.byte()
	if err != nil {
		return err
	}
	if t >= messages || of[t] == nil {
		return c.wrongType(t)
	}
	if err := c.object(of[t]); err != nil {
		return err
	}
	switch t {
	case msgPushPull:
		err = c.states(c.got[0], c.got[1])
	case msgUser:
		_, err = c.take(int(c.got[0]))
	}
	if err != nil {
		return err
	}
	return c.end()
}

func (c *cursor) wrongType(t byte) error {
	if t == msgCompress {
		return refuse(RefusedMalformed, "it is compressed, which no replica does")
	}
	return refuse(RefusedMalformed, "a message of type %d on a connection", t)
}

// states checks a list of members, and the payload behind it.
func (c *cursor) states(n, payload uint64) error {
	for range n {
		if err := c.object(stateFields); err != nil {
			return err
		}
	}
	_, err := c.take(int(payload))
	return err
}
