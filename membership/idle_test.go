//go:build unix

package membership

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// idleFor is what one measurement takes, behind settleFor in which the members find each other and repeat what they announced.
const (
	idleFor   = 5 * time.Second
	settleFor = 5 * time.Second
)

// BenchmarkIdle measures what a member costs while nothing happens, with ten of them in one process, on sockets: the
// processor time, and what it sends and receives. `belfry bench gossip` measures the same with a process for each.
func BenchmarkIdle(b *testing.B) {
	for _, c := range []struct {
		name    string
		profile Profile
		secrets [][]byte
	}{
		{"Fast", Fast, nil}, {"Fast with a key", Fast, [][]byte{secret(1)}}, {"LAN", LAN, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			var all []*Cluster
			for i := range 10 {
				cfg := Config{Name: fmt.Sprint("replica-", i), Namespace: "billing", Profile: c.profile, Secrets: c.secrets, Logger: quietLog()}
				if i > 0 {
					cfg.Seeds = []string{all[0].Addr()}
				}
				m, err := Join(b.Context(), cfg)
				if err != nil {
					b.Fatal(err)
				}
				defer m.Close()
				all = append(all, m)
			}
			<-time.After(settleFor)
			cpu, bytes, runs := processor(b), traffic(all), 0
			for b.Loop() {
				<-time.After(idleFor)
				runs++
			}
			per := float64(len(all)) * float64(runs) * idleFor.Seconds()
			b.ReportMetric(float64((processor(b)-cpu).Microseconds())/1000/per, "cpu-ms/s")
			b.ReportMetric(float64(traffic(all)-bytes)/per, "sent-B/s")
		})
	}
}

// processor is what this process has used so far.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// traffic is what they have sent so far.
func traffic(all []*Cluster) (sent int64) {
	for _, c := range all {
		sent += c.Stats().Sent
	}
	return sent
}
