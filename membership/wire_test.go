package membership

import (
	"bytes"
	"compress/lzw"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"testing"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// memberlist's messages, as its encoder and decoder see them. What the gate lets through has to be what they mean.
type (
	wirePing struct {
		SeqNo      uint32
		Node       string
		SourceAddr []byte `codec:",omitempty"`
		SourcePort uint16 `codec:",omitempty"`
		SourceNode string `codec:",omitempty"`
	}
	wireIndirectPing struct {
		SeqNo      uint32
		Target     []byte
		Port       uint16
		Node       string
		Nack       bool
		SourceAddr []byte `codec:",omitempty"`
		SourcePort uint16 `codec:",omitempty"`
		SourceNode string `codec:",omitempty"`
	}
	wireAck struct {
		SeqNo   uint32
		Payload []byte
	}
	wireNack    struct{ SeqNo uint32 }
	wireError   struct{ Error string }
	wireAccused struct {
		Incarnation uint32
		Node        string
		From        string
	}
	wireAlive struct {
		Incarnation uint32
		Node        string
		Addr        []byte
		Port        uint16
		Meta        []byte
		Vsn         []uint8
	}
	wirePushPull struct {
		Nodes        int
		UserStateLen int
		Join         bool
	}
	wireUser  struct{ UserMsgLen int }
	wireState struct {
		Name        string
		Addr        []byte
		Port        uint16
		Meta        []byte
		Incarnation uint32
		State       int
		Vsn         []uint8
	}
	wireCompress struct {
		Algo uint8
		Buf  []byte
	}
)

var wireVersions = []uint8{1, 5, 2, 0, 0, 0}

// encode is memberlist's encoding of a message.
func encode(t byte, v any) []byte {
	b := bytes.NewBuffer([]byte{t})
	if err := codec.NewEncoder(b, &codec.MsgpackHandle{}).Encode(v); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// decode reads one message, and returns what follows it.
func decode(b []byte, v any) (rest []byte, err error) {
	r := bytes.NewReader(b)
	err = codec.NewDecoder(r, &codec.MsgpackHandle{}).Decode(v)
	return b[len(b)-r.Len():], err
}

func alive(node string) []byte {
	return encode(msgAlive, wireAlive{Incarnation: 3, Node: node, Addr: []byte{127, 0, 0, 1}, Port: 9, Meta: []byte("meta"), Vsn: wireVersions})
}

func state(name string) wireState {
	return wireState{Name: name, Addr: []byte{127, 0, 0, 1}, Port: 9, Meta: []byte("meta"), Incarnation: 3, Vsn: wireVersions}
}

// pushPull encodes a list of members; the header says what it says, true or not.
func pushPull(h wirePushPull, user []byte, states ...wireState) []byte {
	b := encode(msgPushPull, h)
	for _, s := range states {
		b = append(b, encode(0, s)[1:]...)
	}
	return append(b, user...)
}

// compound packs messages into one.
func compound(parts ...[]byte) []byte {
	b := []byte{msgCompound, byte(len(parts))}
	for _, p := range parts {
		b = binary.BigEndian.AppendUint16(b, uint16(len(p)))
	}
	return append(b, bytes.Join(parts, nil)...)
}

func checksum(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{msgChecksum}, crc32.ChecksumIEEE(b)), b...)
}

// bomb is a compressed message that grows to size.
func bomb(size int) []byte {
	var b bytes.Buffer
	w := lzw.NewWriter(&b, lzw.LSB, 8)
	zeros := make([]byte, 1<<20)
	for n := 0; n < size; n += len(zeros) {
		_, _ = w.Write(zeros) // to memory
	}
	_ = w.Close()
	return encode(msgCompress, wireCompress{Buf: b.Bytes()})
}

func labelled(namespace string, b []byte) []byte {
	l := clusterLabel(namespace)
	return append(append([]byte{msgLabel, byte(len(l))}, l...), b...)
}

// seal encrypts as memberlist does.
func seal(key, plain, data []byte) []byte {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	b := append([]byte{sealVersion}, make([]byte, nonceSize)...)
	return gcm.Seal(b, b[1:], plain, data)
}

// packet is one as it is on the wire, encrypted if there is a key.
func packet(namespace string, key, plain []byte) []byte {
	if key != nil {
		plain = seal(key, plain, []byte(clusterLabel(namespace)))
	}
	return labelled(namespace, plain)
}

// stream is what a caller sends.
func stream(namespace string, key, plain []byte) []byte {
	return labelled(namespace, streamBody(namespace, key, plain))
}

// streamBody is the same without the label: what is answered.
func streamBody(namespace string, key, plain []byte) []byte {
	if key == nil {
		return plain
	}
	head := binary.BigEndian.AppendUint32([]byte{msgEncrypt}, uint32(sealMin+len(plain)))
	return append(head, seal(key, plain, append(bytes.Clone(head), clusterLabel(namespace)...))...)
}

// someMessages are good ones, of each kind that may be in a packet.
func someMessages() [][]byte {
	return [][]byte{
		encode(msgPing, wirePing{SeqNo: 1 << 20, Node: "a@1", SourceAddr: []byte{127, 0, 0, 1}, SourcePort: 1 << 15, SourceNode: "b@2"}),
		encode(msgPing, wirePing{}),
		encode(msgIndirectPing, wireIndirectPing{SeqNo: 200, Target: make([]byte, 16), Port: 7, Node: "a@1", Nack: true}),
		encode(msgAck, wireAck{SeqNo: 1<<32 - 1}),
		encode(msgNack, wireNack{SeqNo: 70_000}),
		encode(msgSuspect, wireAccused{Incarnation: 1, Node: "a@1", From: "b@2"}),
		encode(msgDead, wireAccused{Incarnation: 1, Node: "a@1", From: "b@2"}),
		alive("a@1"),
		{msgUser, 'h', 'i'},
	}
}

// someCalls are good messages of each kind that may begin a connection.
func someCalls() [][]byte {
	full := state("a@1")
	full.Meta, full.Addr = bytes.Repeat([]byte{7}, 512), make([]byte, 16)
	return [][]byte{
		encode(msgPing, wirePing{SeqNo: 5, Node: "a@1"}),
		append(encode(msgUser, wireUser{UserMsgLen: 300}), make([]byte, 300)...),
		pushPull(wirePushPull{Join: true}, nil),
		pushPull(wirePushPull{Nodes: 2, UserStateLen: 3}, []byte("abc"), state("b@2"), full),
	}
}

// bitConn is a connection that gives its bytes a few at a time, and then its end.
type bitConn struct {
	net.Conn
	b    []byte
	step int
}

func (c *bitConn) Read(b []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.b[:min(c.step, len(c.b))])
	c.b = c.b[n:]
	return n, nil
}

// reader makes a cursor that reads from a connection.
func reader(t testing.TB, n *counters, b []byte, step int) *cursor {
	vs := &visitors{most: 1, crowded: func(net.Conn) { t.Error("crowded") }}
	return &cursor{in: &intake{visitors: vs, visitor: vs.enter(&bitConn{b: b, step: step}), received: &n.received}}
}
