package membership

import (
	"testing"
	"time"
)

// TestHealsAmidEchoes replays, over and over, what was heard of four members of which one has left, to the other three, by
// somebody without the key: a partition meanwhile heals as soon as ever. What memberlist asks about and then finds to be old
// is nobody who came.
func TestHealsAmidEchoes(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(f *fleet) {
		heard := &tape{}
		for i := range 4 {
			m, err := joinOn(f.Context(), Config{Name: letter(i), Namespace: "test", Seeds: addrs(f.all), Secrets: [][]byte{secret(1)},
				Logger: quietLog()}, &tappedHost{Host: f.net.Listen(), tape: heard})
			if err != nil {
				f.Fatal(err)
			}
			f.all = append(f.all, m)
			f.announce(m, Serving)
		}
		f.agree(formed, f.all, names(4))
		time.Sleep(20 * time.Second)
		heard.stop()
		gone := f.all[3]
		f.all = f.all[:3]
		f.close(gone)
		f.agree(5*time.Second, f.all, names(3))

		stop, done := make(chan struct{}), make(chan struct{})
		go func() { defer close(done); f.echo(heard, stop) }()
		time.Sleep(40 * time.Second)
		f.net.Split(addrs(f.all[:2]), addrs(f.all[2:]))
		time.Sleep(20 * time.Second)
		f.net.Heal()
		took := f.within(merged, "all see all", func() bool {
			return len(f.all[0].Members()) >= 3 && len(f.all[2].Members()) >= 3
		})
		close(stop)
		<-done
		refused := f.all[0].Stats().Refused[RefusedCrowded]
		f.Logf("seed %d: merged %s after the heal, %d times too many came", f.seed, took, refused)
		if refused > 0 {
			f.Errorf("seed %d: echoes counted as %d members too many", f.seed, refused)
		}
	})
}

// echo sends what carries news to all, a hundred packets a second to each, until stop.
func (f *fleet) echo(heard *tape, stop <-chan struct{}) {
	const news = 300 // bytes; a probe is shorter
	from := f.net.Listen()
	defer func() { _ = from.Shutdown() }()
	for {
		for _, s := range heard.sent {
			if s.call || len(s.b) < news {
				continue
			}
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			for _, to := range addrs(f.all) {
				_, _ = from.WriteTo(s.b, to)
			}
		}
	}
}
