package simnet

import (
	"bytes"
	"errors"
	"io"
	"math/bits"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const sends = 1000 // below the bound on packets that wait at a host

// carried sends numbered packets at once, and returns what arrives in a second, in its order.
func carried(t *testing.T, a, b *Host) [][]byte {
	t.Helper()
	for i := range sends {
		if _, err := a.WriteTo([]byte{byte(i >> 8), byte(i), 0, 0}, b.Addr()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second)
	synctest.Wait()
	var all [][]byte
	for range len(b.packets) {
		all = append(all, (<-b.packets).Buf)
	}
	return all
}

func number(b []byte) int { return int(b[0])<<8 | int(b[1]) }

func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, a, b := two(t)
		const least, most = 50 * time.Millisecond, 500 * time.Millisecond
		n.Impair(Impairment{DelayMin: least, DelayMax: most})
		send := func() {
			if _, err := a.WriteTo([]byte{1}, b.Addr()); err != nil {
				t.Fatal(err)
			}
		}
		low, high := most, least
		for range 200 {
			sent := time.Now()
			send()
			<-b.PacketCh()
			d := time.Since(sent)
			low, high = min(low, d), max(high, d)
		}
		if low < least || low > least+20*time.Millisecond || high > most || high < most-20*time.Millisecond {
			t.Errorf("200 delays of %s to %s", low, high)
		}

		overtaken := 0
		last := -1
		all := carried(t, a, b)
		for _, p := range all {
			if k := number(p); k < last {
				overtaken++
			} else {
				last = k
			}
		}
		if len(all) != sends || overtaken == 0 {
			t.Errorf("%d of %d arrive, %d were overtaken", len(all), sends, overtaken)
		}

		n.Impair(Impairment{DelayMin: least, DelayMax: least})
		begun := time.Now()
		send()
		if <-b.PacketCh(); time.Since(begun) != least {
			t.Errorf("a fixed delay of %s", time.Since(begun))
		}
	})
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, a, b := two(t)
		n.Impair(Impairment{Duplicate: 0.01})
		seen := map[int]int{}
		twice := 0
		for _, p := range carried(t, a, b) {
			if seen[number(p)]++; seen[number(p)] == 2 {
				twice++
			}
		}
		if len(seen) != sends || twice < 2 || twice > 25 {
			t.Errorf("%d of %d arrive, %d of them twice", len(seen), sends, twice)
		}
	})
}

func TestCorrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, a, b := two(t)
		n.Impair(Impairment{Corrupt: 0.2, DelayMin: delayMin, DelayMax: delayMin}) // in order: arrivals tell their numbers
		short, flipped := 0, 0
		all := carried(t, a, b)
		if len(all) != sends {
			t.Fatalf("%d of %d arrive", len(all), sends)
		}
		for _, p := range all {
			switch {
			case len(p) < 4:
				short++
			case p[2] != 0 || p[3] != 0:
				flipped++
				if bits.OnesCount8(p[2])+bits.OnesCount8(p[3]) != 1 {
					t.Errorf("%v has more than a bit flipped", p)
				}
			}
		}
		// Half of the 200 are cut; of the other half, those hit in the last two of four bytes are counted.
		if short < 70 || short > 130 || flipped < 25 || flipped > 80 {
			t.Errorf("%d cut short, %d with a bit flipped", short, flipped)
		}
		if _, err := a.WriteTo(nil, b.Addr()); err != nil {
			t.Error(err)
		}
	})
}

// TestReset breaks a connection at a write: both sides fail, as with sockets.
func TestReset(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, a, b := two(t)
		x, y := dial(t, a, b)
		if _, err := x.Write([]byte("before")); err != nil {
			t.Fatal(err)
		}
		n.Impair(Impairment{Reset: 1})
		if _, err := x.Write([]byte("after")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("write: %v", err)
		}
		got, err := io.ReadAll(y)
		if !bytes.Equal(got, []byte("before")) || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the other side reads %q, %v", got, err)
		}
		if _, err := x.Read(got); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v", err)
		}
	})
}

// TestSlowStream: bytes of one connection come late, and in order.
func TestSlowStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, a, b := two(t)
		n.Impair(Impairment{DelayMin: 50 * time.Millisecond, DelayMax: 500 * time.Millisecond, Loss: 1})
		begun := time.Now()
		x, y := dial(t, a, b)
		for i := range 100 {
			if _, err := x.Write([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(y)
		for i, c := range all {
			if int(c) != i {
				t.Fatalf("byte %d is %d", i, c)
			}
		}
		if d := time.Since(begun); err != nil || len(all) != 100 || d < 400*time.Millisecond {
			t.Errorf("%d bytes after %s, %v", len(all), d, err)
		}
		begun = time.Now()
		if _, err := a.DialTimeout(b.Addr(), 99*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != 99*time.Millisecond {
			t.Errorf("a call that takes longer than it may ended with %v after %s", err, time.Since(begun))
		}
	})
}

func TestImpairPanics(t *testing.T) {
	t.Parallel()
	for _, most := range []time.Duration{0, 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a range from 2 to %d was taken", most)
				}
			}()
			New(1).Impair(Impairment{DelayMin: 2, DelayMax: most})
		}()
	}
}
