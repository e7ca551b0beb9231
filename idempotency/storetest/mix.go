package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

const (
	mixers = 4
	steps  = 60
	mixDue = 10
	mixFor = 2 * time.Second // where the store is slow
	seedIn = "STORETEST_SEED"
)

// mix has replicas claim, take up, crash, lapse and finish at random, also with
// fences that were overtaken, and an oracle that knows nothing of the store
// watch them. It then takes over and ends all that is left. I1, I3, I4, I10.
func mix(b *bundle) {
	seed := rand.Uint64()
	if s := os.Getenv(seedIn); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	a := b.ready("a", "h1")
	due := repeat(mixDue, func(i int) time.Time { return b.ago(time.Duration(60-i) * time.Second) })
	a.opens(due...)
	o := &oracle{high: make(map[string]int64), used: make(map[int64]bool), done: make(map[idempotency.ID]int), held: make(map[string]int64)}
	ctx, cancel := context.WithTimeout(b.Context(), mixFor)
	defer cancel()
	second := b.second()
	errs := make([]error, mixers)
	var wg sync.WaitGroup
	for i := range mixers {
		m := &mixer{b: b, o: o, store: b.Store, due: due, name: i, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		if i%2 == 1 {
			m.store = second
		}
		wg.Go(func() {
			for n := 0; n < steps && errs[i] == nil && ctx.Err() == nil; n++ {
				errs[i] = m.step(b.Context())
			}
			if m.now != nil {
				errs[i] = errors.Join(errs[i], m.store.CloseSession(b.Context(), m.now.session))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(append(errs, o.wrong)...); err != nil {
		b.Fatalf("%v\nrun again with the same choices, if not the same interleaving: %s=%d go test -run %s", err, seedIn, seed, b.Name())
	}
	o.settle(b)
}

// mixer is one replica, through all its sessions.
type mixer struct {
	b     *bundle
	o     *oracle
	store Store
	due   []time.Time
	name  int
	rng   *rand.Rand
	boots int
	nonce int64
	now   *replica // its session; nil: none
	held  []idempotency.Finish
	lost  []idempotency.Finish // of sessions that are gone
}

func (m *mixer) step(ctx context.Context) error {
	if m.b.Advance != nil {
		m.b.Advance(5 * time.Millisecond)
	}
	if m.now == nil {
		return m.open(ctx)
	}
	var err error
	switch x := m.rng.IntN(10); {
	case x < 4:
		err = m.insert(ctx)
	case x < 6:
		err = m.finish(ctx, &m.held)
	case x < 7:
		err = m.finish(ctx, &m.lost)
	case x < 9:
		err = m.sweep(ctx)
	default:
		m.die()
		return m.store.CloseSession(ctx, m.now.session)
	}
	if errors.Is(err, idempotency.ErrSessionDead) {
		m.die()
		m.now, err = nil, nil
	}
	return err
}

// die forgets what is held: the process has crashed.
func (m *mixer) die() {
	m.lost = append(m.lost, m.held...)
	m.held = nil
}

// open opens the session of a new process. Some are short-lived and will lapse.
func (m *mixer) open(ctx context.Context) error {
	m.boots++
	o := idempotency.Opening{
		Namespace: namespace, Replica: fmt.Sprint(m.name), Boot: fmt.Sprint(m.name, m.boots), Partitions: partitions,
		Lease: time.Hour, Horizon: 90 * time.Minute, Retention: 2 * time.Hour,
	}
	if m.rng.IntN(3) == 0 {
		o.Lease = 50 * time.Millisecond
	}
	s, _, err := m.store.OpenSession(ctx, o)
	if err != nil {
		return err
	}
	r := &replica{bundle: m.b, store: m.store, session: s, opening: o, hash: "h1"}
	_, err = m.store.Declare(ctx, s, 0, []idempotency.Declaration{m.b.definition(keyed, "h1")})
	if errors.Is(err, idempotency.ErrSessionDead) {
		return nil
	}
	m.now = r
	return err
}

func (m *mixer) insert(ctx context.Context) error {
	var batch []idempotency.Claim
	for range 1 + m.rng.IntN(3) {
		c := m.now.insert(fmt.Sprint("k", m.rng.IntN(3)), m.due[m.rng.IntN(len(m.due))])
		if m.rng.IntN(8) == 0 {
			c.OnBusy = &idempotency.Finish{Outcome: idempotency.Wait, Wake: m.due[0]}
			c.OnNewer = c.OnBusy
		}
		batch = append(batch, c)
	}
	return m.claim(ctx, batch)
}

// claim claims, now and then twice with one nonce.
func (m *mixer) claim(ctx context.Context, batch []idempotency.Claim) error {
	m.nonce++
	before := m.o.before(batch)
	answers, err := m.store.Claim(ctx, m.now.session, m.nonce, batch)
	if err != nil {
		return err
	}
	fresh := make(map[int64]bool) // a run that the batch asks for twice is answered twice
	for i, a := range answers {
		if a.Verdict == idempotency.Won && !fresh[a.Fence] {
			fresh[a.Fence] = true
			m.o.won(batch[i], a, before[i])
			m.held = append(m.held, done(batch[i].ID, a.Fence))
		}
	}
	if m.rng.IntN(4) > 0 {
		return nil
	}
	again, err := m.store.Claim(ctx, m.now.session, m.nonce, batch)
	if err != nil {
		return err
	}
	for i, a := range again {
		if a.Verdict == idempotency.Won && answers[i].Verdict == idempotency.Won && a.Fence != answers[i].Fence {
			return fmt.Errorf("%v was won twice under one nonce: %+v, then %+v", batch[i].ID, answers[i], a)
		}
		if a.Verdict == idempotency.Won && answers[i].Verdict != idempotency.Won && !fresh[a.Fence] {
			fresh[a.Fence] = true
			m.o.won(batch[i], a, before[i])
			m.held = append(m.held, done(batch[i].ID, a.Fence))
		}
	}
	return nil
}

// finish finishes one of the list, as done or waiting; it may be overtaken.
func (m *mixer) finish(ctx context.Context, list *[]idempotency.Finish) error {
	if len(*list) == 0 {
		return nil
	}
	i := m.rng.IntN(len(*list))
	f := (*list)[i]
	*list = append((*list)[:i:i], (*list)[i+1:]...)
	if m.rng.IntN(3) == 0 {
		f = waits(f.ID, f.Fence, m.due[0])
	}
	m.o.release(f.ID)
	answers, err := m.store.Finish(ctx, namespace, []idempotency.Finish{f})
	if err == nil && answers[0] == idempotency.Finished && f.Outcome == idempotency.Done {
		m.o.completed(f.ID)
	}
	return err
}

// sweep marks the dead and takes up one run.
func (m *mixer) sweep(ctx context.Context) error {
	lag, err := m.store.Lagging(ctx, m.now.session, all())
	if err != nil {
		return err
	}
	var dead []int64
	for _, x := range lag.Orphaned {
		dead = append(dead, x.Session)
	}
	if err := m.store.MarkDead(ctx, m.now.session, dead); err != nil {
		return err
	}
	runs := append(lag.Orphaned, lag.Waiting...)
	if len(runs) == 0 {
		return nil
	}
	x := runs[m.rng.IntN(len(runs))]
	if x.State == idempotency.Running {
		m.o.release(x.ID)
	}
	return m.claim(ctx, []idempotency.Claim{m.now.takeUp(x.ID, x.Fence)})
}

// oracle remembers what was answered.
type oracle struct {
	mu    sync.Mutex
	high  map[string]int64 // highest fence of the key that was answered
	held  map[string]int64 // fence that holds the key exclusively, as far as is certain
	used  map[int64]bool
	done  map[idempotency.ID]int
	wrong error
}

func (o *oracle) bad(format string, args ...any) {
	o.wrong = errors.Join(o.wrong, fmt.Errorf(format, args...))
}

// before is what is certain of the keys when a claim is sent.
func (o *oracle) before(batch []idempotency.Claim) [][2]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()

	s := make([][2]int64, len(batch))
	for i, c := range batch {
		s[i] = [2]int64{o.high[c.ID.Key], o.held[c.ID.Key]}
	}
	return s
}

func (o *oracle) won(c idempotency.Claim, a idempotency.Answer, before [2]int64) {
	o.mu.Lock()
	defer o.mu.Unlock()

	k := c.ID.Key
	if a.Fence <= before[0] || a.Fence <= c.Seen {
		o.bad("%v was won with fence %d after %d had been answered", c.ID, a.Fence, max(before[0], c.Seen))
	}
	if o.used[a.Fence] {
		o.bad("fence %d was used twice", a.Fence)
	}
	o.used[a.Fence] = true
	if a.Fence < o.high[k] {
		return // a late answer: the run has been taken up since
	}
	if before[1] != 0 && before[1] != c.Seen && o.held[k] == before[1] {
		o.bad("%v was won with fence %d while %d held the key all the time", c.ID, a.Fence, before[1])
	}
	if o.done[c.ID] > 0 {
		o.bad("%v was won after it was done", c.ID)
	}
	o.high[k], o.held[k] = a.Fence, a.Fence
}

// release is called before something is sent that may free the key.
func (o *oracle) release(id idempotency.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()

	delete(o.held, id.Key)
}

func (o *oracle) completed(id idempotency.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.done[id]++; o.done[id] > 1 {
		o.bad("%v was completed %d times", id, o.done[id])
	}
}

// settle closes the books: all that is left is taken up and done, and the rows
// say what the answers said.
func (o *oracle) settle(b *bundle) {
	b.Helper()
	last := b.ready("last", "h1")
	b.eventually("all runs end", func() bool {
		var dead []*replica
		for _, x := range b.list(idempotency.Filter{}) {
			if x.State == idempotency.Running && x.Session != last.session.ID {
				dead = append(dead, &replica{session: idempotency.Session{ID: x.Session}})
			}
		}
		last.mark(dead...)
		left := 0
		for _, x := range b.list(idempotency.Filter{}) {
			if x.State == idempotency.Ended {
				continue
			}
			left++
			if a := last.claim(last.takeUp(x.ID, x.Fence))[0]; a.Verdict == idempotency.Won {
				b.finishes(idempotency.Finished, done(x.ID, a.Fence))
				o.completed(x.ID)
			}
		}
		return left == 0
	})
	rows := b.list(idempotency.Filter{Outcome: idempotency.Done})
	for _, x := range rows {
		want(b.T, "completions of "+x.ID.Key, o.done[x.ID], 1)
	}
	want(b.T, "completed", len(o.done), len(rows))
}
