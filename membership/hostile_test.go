package membership

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/procs"
)

var hostile = flag.Duration("membership.hostile", 4*time.Second, "how long TestHostile attacks each cluster")

// peakMost is what the three members may take together.
const peakMost = 256 << 20

// TestHostile attacks three members with all that is known to hurt memberlist (S14): a stranger does, one who knows the
// label, one with another key, and one who holds the key; then the same without any key. The members stay members, a
// new one gets in meanwhile, and their process stays below a bound of memory.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("attacks for some seconds")
	}
	for _, c := range []struct {
		name string
		key  []byte
	}{{"keyed", testKey}, {"without keys", nil}} {
		t.Run(c.name, func(t *testing.T) { attackFor(t, c.key, *hostile) })
	}
}

func attackFor(t *testing.T, key []byte, d time.Duration) {
	logPath := filepath.Join(t.TempDir(), "victims.log")
	log, err := os.Create(logPath)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	child, err := procs.Start(log, victimsRole)
	if err != nil {
		t.Fatal(err)
	}
	defer child.Kill()
	var begun, r report
	if err := child.Send(orders{Key: key}); err != nil {
		t.Fatal(err)
	}
	if err := child.Receive(&begun); err != nil {
		t.Fatal(err)
	}
	a := arm(begun.Addrs, key)
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	a.start(ctx)
	joinAmid(t, key, begun.Addrs)
	a.working.Wait()

	if err := child.Send(orders{}); err != nil {
		t.Fatal(err)
	}
	if err := child.Receive(&r); err != nil {
		b, _ := os.ReadFile(logPath)
		t.Fatalf("the members are gone: %v: %s", err, b[max(0, len(b)-4000):])
	}
	if err := child.Stop(10 * time.Second); err != nil {
		t.Error(err)
	}
	t.Logf("%v of attack: %d connections and %d packets; peak %d MB for three members, which received %d MB and refused %v",
		d, a.calls.Load(), a.packets.Load(), r.Peak>>20, r.Received>>20, r.Refused)
	lines, _ := os.ReadFile(logPath)
	if r.Changes != 0 || len(r.Members) != 3 || r.Members[0] != 3 || r.Members[1] != 3 || r.Members[2] != 3 {
		t.Errorf("%d changes of owners; members seen %v: %s", r.Changes, r.Members, lines[max(0, len(lines)-4000):])
	}
	if most := 3 * 2 * logBurst * int(2+d/logWindow); bytes.Count(lines, []byte("\n")) > most {
		t.Errorf("%d lines logged; at most %d", bytes.Count(lines, []byte("\n")), most)
	}
	for _, why := range []Refusal{RefusedStranger, RefusedSize, RefusedMalformed, RefusedCrowded} {
		if r.Refused[why.String()] == 0 {
			t.Errorf("none refused for %s", why)
		}
	}
	if r.Peak == 0 {
		t.Skipf("%s does not say what memory a process took at most", runtime.GOOS)
	}
	if r.Peak > peakMost {
		t.Errorf("%d MB at most; %d are allowed", r.Peak>>20, peakMost>>20)
	}
}

// joinAmid joins while the attack goes on: whoever holds connections open keeps no peer out. It announces nothing, and
// so changes no owners.
func joinAmid(t *testing.T, key []byte, seeds []string) {
	t.Helper()
	m, err := Join(t.Context(), Config{Name: "late", Namespace: "test", Profile: LAN, Secrets: keysOf(key), Seeds: seeds, Logger: quietLog()})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(m.Members()) == 4 })
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// attacker is all attackers of a cluster.
type attacker struct {
	to         []string
	say, throw [][]byte // on connections, and as packets
	slowly     []byte
	working    sync.WaitGroup

	calls, packets atomic.Int64
}

// arm makes what will be sent.
func arm(to []string, key []byte) *attacker {
	wraps := []func([]byte) []byte{
		func(b []byte) []byte { return b },                       // who knows nothing
		func(b []byte) []byte { return stream("test", nil, b) },  // who knows the label
		func(b []byte) []byte { return stream("other", nil, b) }, // of another cluster
	}
	wrapPackets := wraps
	if key != nil {
		for _, k := range [][]byte{otherKey, key} {
			wraps = append(wraps, func(b []byte) []byte { return stream("test", k, b) })
			wrapPackets = append(wrapPackets, func(b []byte) []byte { return packet("test", k, b) })
		}
	}
	var streams, packets [][]byte
	for _, m := range hostileCalls() {
		for _, w := range wraps {
			streams = append(streams, w(m))
		}
	}
	padded := packet("test", testKey, nil)
	padded[len(labelled("test", nil))] = 0
	streams = append(streams, labelled("test", binary.BigEndian.AppendUint32([]byte{msgEncrypt}, 1<<32-1)), []byte("GET / HTTP/1.1\r\n\r\n"))
	for _, m := range hostilePackets() {
		for _, w := range wrapPackets {
			if p := w(m); len(p) < 60_000 {
				packets = append(packets, p)
			}
		}
	}
	packets = append(packets, padded, make([]byte, 60_000))
	return &attacker{to: to, say: streams, throw: packets, slowly: stream("test", key, pushPull(wirePushPull{}, nil))}
}

// start begins all attacks; they end with ctx.
func (a *attacker) start(ctx context.Context) {
	for _, to := range a.to {
		for part := range 4 {
			a.working.Go(func() { a.call(ctx, to, part) })
		}
		a.working.Go(func() { a.send(ctx, to) })
		for range 70 { // more than 200 for all
			a.working.Go(func() { a.idle(ctx, to) })
		}
		for range 20 {
			a.working.Go(func() { a.drip(ctx, to, a.slowly) })
		}
	}
	for range 140 { // and one of them gets the 200 alone
		a.working.Go(func() { a.idle(ctx, a.to[0]) })
	}
}

// hostileCalls are plaintexts that memberlist pays dearly for.
func hostileCalls() [][]byte {
	long := state(strings.Repeat("n", 1_000_000))
	fat := state("a@1")
	fat.Meta = make([]byte, 1_000_000)
	many := bigStates(900 << 10)
	return [][]byte{
		append(encode(msgUser, wireUser{UserMsgLen: 30 << 20}), make([]byte, 30<<20)...),
		append(encode(msgUser, wireUser{UserMsgLen: maxPayload}), make([]byte, maxPayload)...), // a good one
		append(encode(msgUser, wireUser{UserMsgLen: 900 << 10}), make([]byte, 900<<10)...),
		pushPull(wirePushPull{Nodes: 1 << 20}, nil, many...),
		pushPull(wirePushPull{Nodes: maxStates}, nil, many...),
		pushPull(wirePushPull{Nodes: 1 << 20, UserStateLen: 20 << 20}, nil),
		pushPull(wirePushPull{Nodes: 1}, nil, long),
		pushPull(wirePushPull{Nodes: 1}, nil, fat),
		pushPull(wirePushPull{Nodes: 1}, []byte{0x87, 0xa4, 'N', 'a', 'm', 'e', 0xdb, 0xff, 0xff, 0xff, 0xff}),
		bomb(40 << 20),
		{msgCompress},
		{},
	}
}

func hostilePackets() [][]byte {
	deep := encode(msgPing, wirePing{})
	for range 200 {
		deep = compound(deep)
	}
	return [][]byte{
		bomb(40 << 20), deep, compound(bomb(1 << 20)), {}, {msgChecksum}, {msgCompound, 255},
		alive(strings.Repeat("n", 50_000)), alive(strings.Repeat("n", 1000)),
		encode(msgAlive, wireAlive{Node: "x@1", Addr: []byte{127, 0, 0, 1}, Meta: make([]byte, 2000), Vsn: wireVersions}),
		encode(msgAlive, wireAlive{Node: "x@1", Addr: []byte{127, 0, 0, 1}, Vsn: []byte{1}}),
		{msgPing, 0x81, 0xa4, 'N', 'o', 'd', 'e', 0xdb, 0xff, 0xff, 0xff, 0xff},
		{msgUser}, bytes.Repeat([]byte{msgUser}, 3000),
	}
}

// pause waits between two blows; false when it is over.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// open calls; the connection ends with ctx.
func (a *attacker) open(ctx context.Context, to string) net.Conn {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
	if err != nil {
		return nil // over, or a full backlog
	}
	a.calls.Add(1)
	return c
}

// call says one thing after the other, and hears the answer.
func (a *attacker) call(ctx context.Context, to string, part int) {
	for i := part; pause(ctx, 20*time.Millisecond); i++ {
		c := a.open(ctx, to)
		if c == nil {
			continue
		}
		end := context.AfterFunc(ctx, func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(2 * time.Second))
		_, _ = c.Write(a.say[i%len(a.say)]) // refused halfway, mostly
		_, _ = io.Copy(io.Discard, c)
		end()
		_ = c.Close()
	}
}

// send sends packets.
func (a *attacker) send(ctx context.Context, to string) {
	c, err := net.Dial("udp", to)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	for i := 0; pause(ctx, time.Millisecond); i++ {
		if _, err := c.Write(a.throw[i%len(a.throw)]); err == nil {
			a.packets.Add(1)
		}
	}
}

// idle holds a connection open, and calls again when it was closed.
func (a *attacker) idle(ctx context.Context, to string) {
	a.drip(ctx, to, nil)
}

// drip writes a byte every 100 ms.
func (a *attacker) drip(ctx context.Context, to string, b []byte) {
	for pause(ctx, 100*time.Millisecond) {
		c := a.open(ctx, to)
		if c == nil {
			continue
		}
		end := context.AfterFunc(ctx, func() { _ = c.Close() })
		for i := 0; i < len(b) && pause(ctx, 100*time.Millisecond); i++ {
			if _, err := c.Write(b[i : i+1]); err != nil {
				break
			}
		}
		_, _ = io.Copy(io.Discard, c)
		end()
		_ = c.Close()
	}
}
