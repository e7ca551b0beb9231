package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	// callConns is how many calls of a store run at once, besides renewals.
	callConns = 4

	// The server closes a connection of ours that is silent for silence: a client that was stopped in the middle of a
	// transaction then holds no locks any more. The store closes one that is idle for nearly as long itself.
	silence = 5 * time.Second
	idleFor = silence - time.Second

	// lockWait is how long the server lets a statement wait for a row lock, in seconds. The caller's context is watched
	// by the client alone: a statement that it gave up waits on in the server.
	lockWait = 1

	// maxPacket bounds statements to what a server takes fast, where its max_allowed_packet allows more.
	maxPacket = 4 << 20
)

var errClosed = errors.New("the store is closed; open it again")

// settings make a connection ours, whatever the server's defaults, the user's and the caller's are. Every transaction
// begins with its first statement.
var settings = []string{
	fmt.Sprintf(`SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', SESSION time_zone = '+00:00',
SESSION autocommit = 0, SESSION innodb_lock_wait_timeout = %d, SESSION wait_timeout = %d, SESSION unique_checks = 1, SESSION foreign_key_checks = 1,
SESSION sql_safe_updates = 0, SESSION sql_auto_is_null = 0, SESSION sql_select_limit = 18446744073709551615, SESSION sql_big_selects = 1`,
		lockWait, int(silence.Seconds())),
	`SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE`,
}

// candidates is how many connections of the caller's pool are tried for one that is fit.
const candidates = 8

// conn is a connection that the store took from the caller's pool and set up for itself. One goroutine uses it at a time.
type conn struct {
	*sql.Conn
	packet int // bytes that a statement may have
	used   time.Time
}

// connect takes a connection to the database from the caller's pool; to any database where its name is empty. What is idle
// there may be dead or elsewhere: that is discarded for the next one.
func connect(ctx context.Context, db *sql.DB, database string) (x *conn, err error) {
	for range candidates {
		c, taken := db.Conn(ctx)
		if taken != nil {
			return nil, errors.Join(taken, err)
		}
		x = &conn{Conn: c}
		if err = x.setUp(ctx, database); err == nil {
			return x, nil
		}
		x.discard()
		var answered *mysql.MySQLError
		if errors.As(err, &answered) || ctx.Err() != nil {
			return nil, err
		}
	}
	return nil, err
}

// setUp makes the connection ours. A server that does not answer takes a quarter of the time that there is.
func (c *conn) setUp(ctx context.Context, database string) error {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/4)
		defer cancel()
	}
	for _, text := range settings {
		if _, err := c.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	// UTC_TIMESTAMP follows it. Where the server forbids to set it, nobody has.
	var forbidden *mysql.MySQLError
	if _, err := c.ExecContext(ctx, `SET SESSION timestamp = DEFAULT`); err != nil && !errors.As(err, &forbidden) {
		return err
	}
	var is sql.NullString
	if err := c.QueryRowContext(ctx, `SELECT @@max_allowed_packet, DATABASE()`).Scan(&c.packet, &is); err != nil {
		return err
	}
	if database != "" && is.String != database {
		return fmt.Errorf("a connection of the pool is in database %q, and the store in %q; let no statement USE another", is.String, database)
	}
	c.packet = min(c.packet-c.packet/8, maxPacket)
	return nil
}

// discard closes the connection itself, lest the caller's pool gets one with our settings.
func (c *conn) discard() {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.Close()
}

// pool keeps a few connections.
type pool struct {
	db       *sql.DB
	database string        // its name, set before the first use
	turn     chan struct{} // held by those that use one
	shut     chan struct{} // closed by close
	once     sync.Once

	mu    sync.Mutex
	idle  []*conn     // the last one was used last
	timer *time.Timer // drops
}

func newPool(db *sql.DB, size int) *pool {
	p := &pool{db: db, turn: make(chan struct{}, size), shut: make(chan struct{})}
	p.timer = time.AfterFunc(idleFor, func() {
		p.mu.Lock()
		defer p.mu.Unlock()

		p.drop()
	})
	return p
}

// get returns a connection that the caller puts back, broken or not.
func (p *pool) get(ctx context.Context) (*conn, error) {
	select {
	case <-p.shut:
		return nil, errClosed
	default:
	}
	select {
	case p.turn <- struct{}{}:
	case <-p.shut:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c := p.take(); c != nil {
		return c, nil
	}
	c, err := connect(ctx, p.db, p.database)
	if err != nil {
		<-p.turn
	}
	return c, err
}

// take returns the connection that was used last, nil if there is none that can still be used.
func (p *pool) take() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.drop()
	if len(p.idle) == 0 {
		return nil
	}
	c := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return c
}

// drop closes the connections that were idle for too long, and sees to those that will be.
func (p *pool) drop() {
	for len(p.idle) > 0 && time.Since(p.idle[0].used) >= idleFor {
		p.idle[0].discard()
		p.idle = p.idle[1:]
	}
	if len(p.idle) > 0 {
		p.timer.Reset(idleFor - time.Since(p.idle[0].used))
	}
}

func (p *pool) put(c *conn, broken bool) {
	if broken {
		c.discard()
	} else {
		c.used = time.Now()
		p.mu.Lock()
		p.idle = append(p.idle, c)
		p.drop()
		p.mu.Unlock()
	}
	<-p.turn
}

// close waits until nobody uses a connection, and closes all.
func (p *pool) close() {
	p.once.Do(func() {
		close(p.shut)
		for range cap(p.turn) {
			p.turn <- struct{}{}
		}
		p.mu.Lock()
		defer p.mu.Unlock()

		p.timer.Stop()
		for _, c := range p.idle {
			c.discard()
		}
		p.idle = nil
	})
}
