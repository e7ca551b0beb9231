//go:build unix

package etcdrig

import (
	"context"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/belfry-go/belfry/scheduler"
)

// witness is an elector whose terms are written down, in the ledger and in etcd.
type witness struct {
	scheduler.Elector
	*member
}

// Lead has one more goroutine that writes down what the term's context says, and one that signs for as long and once more.
func (w *witness) Lead(ctx context.Context, lead func(context.Context, int64) error) error {
	return w.Elector.Lead(ctx, func(ctx context.Context, term int64) error {
		done, why := make(chan struct{}), make(chan string)
		go func() { why <- w.watch(ctx, trusted, term, done) }()
		w.work.Go(func() { w.sign(ctx, term, done) })
		err := lead(ctx, term)
		close(done)
		w.ledger.write(line{Phase: over, Term: term, Text: <-why})
		return err
	})
}

// sign writes the term to a key of etcd again and again, each time on the one condition that the term is still etcd's. It
// does not ask the context first, and writes once more when that has ended: only the condition keeps it from
// writing after the next leader.
func (w *witness) sign(ctx context.Context, term int64, done <-chan struct{}) {
	key := w.keyOf(term)
	for last := false; ; {
		if key == "" {
			key = w.keyOf(term)
		}
		if key != "" && !w.put(key, term) {
			w.ledger.write(line{Phase: fencedOff, Term: term})
			return
		}
		if last {
			return
		}
		pass(ctx, pace())
		select {
		case <-done:
			last = true
		default:
			last = ctx.Err() != nil
		}
	}
}

// keyOf finds the key of a term: the one that was made in that revision. Empty: etcd did not say.
func (w *witness) keyOf(term int64) string {
	ctx, cancel := context.WithTimeout(context.Background(), signWithin)
	defer cancel()
	r, err := w.etcd.Get(ctx, election, clientv3.WithPrefix(), clientv3.WithMinCreateRev(term), clientv3.WithMaxCreateRev(term), clientv3.WithKeysOnly())
	if err != nil || len(r.Kvs) == 0 {
		return ""
	}
	return string(r.Kvs[0].Key)
}

// put reports whether the term may be etcd's still: false where etcd says that it is not.
func (w *witness) put(key string, term int64) bool {
	ctx, cancel := context.WithTimeout(context.Background(), signWithin)
	defer cancel()
	r, err := w.etcd.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", term)).
		Then(clientv3.OpPut(signature, strconv.FormatInt(term, 10)+" "+w.Name)).Commit()
	return err != nil || r.Succeeded
}
