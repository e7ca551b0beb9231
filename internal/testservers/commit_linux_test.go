package testservers

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/faultproxy"
)

// TestCommitReply loses a server's reply to a commit in each way that faultproxy offers. The client cannot tell; the
// server has committed. A commit that is lost before the server is the other half of the doubt.
func TestCommitReply(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		of    func(testing.TB) *Server
		lose  func(*faultproxy.Proxy)
		words string // that are there afterwards
	}{
		{"Postgres, the reply", Postgres, func(p *faultproxy.Proxy) { p.ToClient.Lose(faultproxy.PostgresCommitted, faultproxy.Hang) }, "1"},
		{"Postgres, the reply, with a reset", Postgres, func(p *faultproxy.Proxy) { p.ToClient.Lose(faultproxy.PostgresCommitted, faultproxy.Reset) }, "1"},
		{"MariaDB, the reply", MariaDB, func(p *faultproxy.Proxy) { p.LoseReply(faultproxy.MySQLCommit, faultproxy.Hang) }, "1"},
		{"MariaDB, the reply, with a reset", MariaDB, func(p *faultproxy.Proxy) { p.LoseReply(faultproxy.MySQLCommit, faultproxy.Reset) }, "1"},
		{"MariaDB, the request", MariaDB, func(p *faultproxy.Proxy) { p.ToServer.Lose(faultproxy.MySQLCommit, faultproxy.Reset) }, "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := c.of(t).Database(t)
			direct := connect(t, d)
			do(t, direct, "create table words (word varchar(10))")
			p, err := faultproxy.Listen(d.Addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Close() })
			db := connect(t, d.At(p.Addr()))
			do(t, db, "delete from words") // commits by itself, before the fault
			c.lose(p)
			tx, err := db.BeginTx(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("insert into words values ('a')"); err != nil {
				t.Fatal(err)
			}
			freed := make(chan struct{})
			go resetLost(p, freed)
			if err := tx.Commit(); err == nil {
				t.Error("the client was told that it committed")
			}
			<-freed
			if got := ask(t, direct, "select count(*) from words"); got != c.words {
				t.Errorf("%s words, want %s", got, c.words)
			}
		})
	}
}

// resetLost breaks the connections once a chunk was lost: a commit knows no deadline.
func resetLost(p *faultproxy.Proxy, done chan<- struct{}) {
	defer close(done)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for range again.C {
		if n := p.Counts(); n.Lost+n.Replies > 0 {
			p.Reset()
			return
		}
	}
}
