package membership

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// What has been vetted is memberlist's at once, for at most so many connections and bytes: it makes about five times
// a message of it. The rest waits.
const (
	guestsMost = 64
	guestBytes = 8 << 20
	guestUnit  = guestBytes / guestsMost
)

// turnstile hands connections on, the first come first.
type turnstile struct {
	turn  chan struct{} // capacity 1: whose turn it is to take places
	place chan struct{} // capacity guestsMost, each for guestUnit bytes
	stop  <-chan struct{}
}

func newTurnstile(stop <-chan struct{}) *turnstile {
	return &turnstile{turn: make(chan struct{}, 1), place: make(chan struct{}, guestsMost), stop: stop}
}

// enter waits for room for a message of so many bytes, and returns how many places it took. It reports false if it was
// ended before.
func (t *turnstile) enter(size int, out <-chan struct{}) (places int, ok bool) {
	if !tryPut(t.turn, out, t.stop) {
		return 0, false
	}
	defer func() { <-t.turn }()
	for want := 1 + (size-1)/guestUnit; places < want; places++ {
		if !tryPut(t.place, out, t.stop) {
			t.leave(places)
			return 0, false
		}
	}
	return places, true
}

// tryPut puts a token into c, unless one of the others ends first.
func tryPut(c chan<- struct{}, out, stop <-chan struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	case <-out:
	case <-stop:
	}
	return false
}

func (t *turnstile) leave(places int) {
	for range places {
		<-t.place
	}
}

// guest is a vetted connection: memberlist reads the message from it, and then its end, whatever else was sent.
type guest struct {
	net.Conn
	message []byte
	sent    *atomic.Int64
	release func() // called once
	once    sync.Once
}

func (g *guest) Read(b []byte) (int, error) { return replay(&g.message, b) }

// replay reads from the front of a message.
func replay(message *[]byte, b []byte) (int, error) {
	if len(*message) == 0 {
		return 0, io.EOF
	}
	n := copy(b, *message)
	*message = (*message)[n:]
	return n, nil
}

func (g *guest) Write(b []byte) (int, error) {
	n, err := g.Conn.Write(b)
	g.sent.Add(int64(n))
	return n, err
}

func (g *guest) Close() error {
	defer g.once.Do(g.release)
	return g.Conn.Close()
}
