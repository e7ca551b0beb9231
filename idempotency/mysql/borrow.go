package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
)

// borrowed is a connection of the caller's pool in a transaction of the application's. It goes back as it came, or is closed.
//
// The transaction lives under a context without an end: sql.Tx would answer the end with a rollback that waits for a silent
// server for ever, holding the connection. The connection is closed instead, which is a rollback too.
type borrowed struct {
	conn    *sql.Conn
	tx      *sql.Tx
	kept    bool // the server waits for our next statement as long as the caller's settings say
	release context.CancelFunc
}

// borrow begins a transaction that is closed with its connection when ctx ends.
func borrow(ctx context.Context, db *sql.DB) (*borrowed, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	begun := context.AfterFunc(ctx, end)
	tx, err := c.BeginTx(life, nil)
	begun()
	if err != nil {
		end()
		_ = c.Raw(func(any) error { return driver.ErrBadConn })
		_ = c.Close()
		return nil, err
	}
	b := &borrowed{conn: c, tx: tx, kept: true}
	watch := context.AfterFunc(ctx, b.cut)
	b.release = func() { watch(); end() }
	return b, nil
}

// hurry lets the server close the connection, and so free its locks, when the client is silent for silence.
func (b *borrowed) hurry(ctx context.Context) error {
	_, err := b.tx.ExecContext(ctx, fmt.Sprintf(`SET @belfry_wait_timeout = @@SESSION.wait_timeout, SESSION wait_timeout = %d`, int(silence.Seconds())))
	b.kept = b.kept && err != nil
	return err
}

// cut closes the connection below database/sql, which would wait for the end of the transaction.
func (b *borrowed) cut() {
	_ = b.conn.Raw(func(c any) error {
		if c, ok := c.(driver.Conn); ok {
			_ = c.Close()
		}
		return nil // an error would have database/sql close it too, and wait
	})
}

// end rolls back what was not committed and gives the connection back. It is bounded.
func (b *borrowed) end(ctx context.Context, committed bool) {
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	// Through tx, since a *sql.Conn that finds its connection broken waits for the end of the transaction.
	var err error
	if !committed {
		_, err = b.tx.ExecContext(brief, `ROLLBACK`)
	}
	if err == nil && !b.kept {
		_, err = b.tx.ExecContext(brief, `SET SESSION wait_timeout = @belfry_wait_timeout`)
	}
	// Nothing is open any more, or the connection is closed. But sql.Tx asks the server once more, without a bound: where that
	// does not answer now, the connection is left to end by itself.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err != nil {
			b.cut()
		}
		_ = b.tx.Rollback()
		b.release()
		_ = b.conn.Close()
	}()
	select {
	case <-ended:
	case <-brief.Done():
	}
}
