package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// The test binary is its own child process where these are set.
const (
	roleIn = "SQLITE_TEST_ROLE"
	pathIn = "SQLITE_TEST_PATH"
	seedIn = "SQLITE_TEST_SEED"
)

// play is a child process. It ends when its parent does.
func play(role, path string) int {
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return 1
	}
	go func() {
		io.Copy(io.Discard, in)
		os.Exit(1)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var err error
	switch role {
	case "open":
		err = playOpen(ctx, path)
	case "traffic":
		err = playTraffic(ctx, path)
	case "effect", "effect, committed":
		err = playEffect(ctx, path, role != "effect")
	default:
		err = playAs(ctx, role, path)
	}
	if err != nil {
		fmt.Fprintln(os.Stdout, "error", err)
		return 1
	}
	return 0
}

// child starts a child process. Its standard output is read line by line.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func start(t testing.TB, role, path string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleIn+"="+role, pathIn+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &child{cmd: cmd, in: in, lines: bufio.NewScanner(out)}
}

func (c *child) release() { io.WriteString(c.in, "go\n") }

// all returns what the child still says, and waits for its end.
func (c *child) all() (lines []string) {
	for c.lines.Scan() {
		lines = append(lines, c.lines.Text())
	}
	c.in.Close()
	c.cmd.Wait()
	return lines
}

func playOpen(ctx context.Context, path string) error {
	s, err := Open(ctx, path, nil)
	if err != nil {
		return err
	}
	w, err := startWorker(ctx, s, strconv.Itoa(os.Getpid()), time.Hour)
	if err != nil {
		return err
	}
	f, err := w.tryClaim(ctx, os.Getpid(), 1)
	if err != nil || len(f) != 1 {
		return fmt.Errorf("claimed %d: %w", len(f), err)
	}
	fmt.Fprintln(os.Stdout, "store", s.id)
	return s.Close()
}

// Eight processes that come at once make one file together.
func TestOpenRace(t *testing.T) {
	t.Parallel()
	path := file(t)
	children := make([]*child, 8)
	for i := range children {
		children[i] = start(t, "open", path)
	}
	for _, c := range children {
		c.release()
	}
	said := make(map[string]int)
	for _, c := range children {
		said[strings.Join(c.all(), "; ")]++
	}
	s := openAt(t, path, &Options{NoMigrate: true}, time.Now)
	if said["store "+s.id] != len(children) {
		t.Fatalf("the processes said %v, want all of them %q", said, "store "+s.id)
	}
	if n := count(t, s); n != len(children) {
		t.Fatalf("%d rows, want %d", n, len(children))
	}
}

const (
	trafficKeys  = 500
	trafficKills = 12
)

// playTraffic claims, takes up and finishes, and says what was acknowledged,
// until all keys are done.
func playTraffic(ctx context.Context, path string) error {
	s, err := Open(ctx, path, nil)
	if err != nil {
		return err
	}
	// Its process is killed, and so its session lapses, often.
	w, err := startWorker(ctx, s, strconv.Itoa(os.Getpid()), 2*time.Second)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		from := rand.IntN(trafficKeys)
		f, err := w.tryClaim(ctx, from, min(1+rand.IntN(20), trafficKeys-from))
		lost := len(f) == 0
		if err == nil {
			err = w.settle(ctx, f)
		}
		if err == nil {
			f, err = w.takeUp(ctx)
		}
		if err == nil {
			err = w.settle(ctx, f)
		}
		if err == nil {
			_, err = s.RenewSession(ctx, w.session)
		}
		if err == nil && lost {
			if left, err := w.left(ctx); err != nil || left == 0 {
				return errors.Join(err, s.Close())
			}
		}
		if errors.Is(err, idempotency.ErrSessionDead) {
			w, err = startWorker(ctx, s, strconv.Itoa(os.Getpid()), 2*time.Second)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// settle says what was won, and finishes it.
func (w *worker) settle(ctx context.Context, f []idempotency.Finish) error {
	for _, x := range f {
		fmt.Fprintln(os.Stdout, "won", x.Fence, x.ID.Key)
	}
	answers, err := w.s.Finish(ctx, "ns", f)
	for i, a := range answers {
		if a == idempotency.Finished {
			fmt.Fprintln(os.Stdout, "done", f[i].Fence, f[i].ID.Key)
		}
	}
	return err
}

func (w *worker) takeUp(ctx context.Context) (f []idempotency.Finish, err error) {
	lag, err := w.s.Lagging(ctx, w.session, idempotency.LagQuery{Ranks: [][]byte{{0xff}}, Limit: 100})
	if err != nil {
		return nil, err
	}
	var dead []int64
	var c []idempotency.Claim
	for _, x := range lag.Orphaned {
		dead = append(dead, x.Session)
		c = append(c, idempotency.Claim{ID: x.ID, Hash: "h1", Exclusive: true, TakeUp: true, Seen: x.Fence})
	}
	if err := w.s.MarkDead(ctx, w.session, dead); err != nil {
		return nil, err
	}
	w.nonce++
	answers, err := w.s.Claim(ctx, w.session, w.nonce, c)
	for i, a := range answers {
		if a.Verdict == idempotency.Won {
			f = append(f, idempotency.Finish{ID: c[i].ID, Fence: a.Fence, Outcome: idempotency.Done, Attempt: 1})
		}
	}
	return f, err
}

// left is how many keys are not done yet.
func (w *worker) left(ctx context.Context) (int, error) {
	done := 0
	for _, err := range w.s.List(ctx, idempotency.Filter{Namespace: "ns", Outcome: idempotency.Done}) {
		if err != nil {
			return 0, err
		}
		done++
	}
	return trafficKeys - done, nil
}

// ledger is what the processes said, which is what the store acknowledged.
type ledger struct {
	mu    sync.Mutex
	won   map[int64]string // key by fence
	done  map[string]int64 // fence by key
	wrong []string
	rng   *rand.Rand

	planned, kills int
}

// hear notes a line.
func (l *ledger) hear(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	what, rest, _ := strings.Cut(line, " ")
	number, key, _ := strings.Cut(rest, " ")
	fence, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil:
		l.wrong = append(l.wrong, line)
	case what == "won":
		if old, ok := l.won[fence]; ok {
			l.wrong = append(l.wrong, fmt.Sprintf("fence %d was given for %q and for %q", fence, old, key))
		}
		l.won[fence] = key
	case what == "done":
		if old, ok := l.done[key]; ok {
			l.wrong = append(l.wrong, fmt.Sprintf("%q was done with fence %d and with %d", key, old, fence))
		}
		l.done[key] = fence
	}
}

// patience is after how many lines a process is to be killed, or never.
func (l *ledger) patience() int {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.planned == trafficKills {
		return -1
	}
	l.planned++
	return 1 + l.rng.IntN(60)
}

// I1, I3, I10: processes that share a file are killed amid their calls, and no
// acknowledged win or end is lost, no run ends twice, no fence is used twice.
func TestKilledProcesses(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if x := os.Getenv(seedIn); x != "" {
		seed, _ = strconv.ParseUint(x, 10, 64)
	}
	t.Logf("run again with the same kills, if not the same interleaving: %s=%d go test -run %s", seedIn, seed, t.Name())
	path := file(t)
	newWorker(t, openAt(t, path, nil, time.Now)) // all share its due
	l := &ledger{won: make(map[int64]string), done: make(map[string]int64), rng: rand.New(rand.NewPCG(seed, 0))}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for killed := true; killed; {
				killed = l.follow(t, path)
			}
		})
	}
	wg.Wait()
	t.Logf("%d kills, %d wins and %d ends acknowledged", l.kills, len(l.won), len(l.done))
	l.audit(t, path)
}

// follow runs one process until it is killed or done.
func (l *ledger) follow(t *testing.T, path string) (killed bool) {
	c := start(t, "traffic", path)
	c.release()
	lines := l.patience()
	for c.lines.Scan() {
		l.hear(c.lines.Text())
		if lines--; lines == 0 {
			killed = true
			c.cmd.Process.Kill() // what it said before is still heard
		}
	}
	c.all()
	if killed {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.kills++
	}
	return killed
}

func (l *ledger) audit(t *testing.T, path string) {
	for _, x := range l.wrong {
		t.Error(x)
	}
	s := openAt(t, path, &Options{NoMigrate: true}, time.Now)
	if n := count(t, s); n != trafficKeys {
		t.Errorf("%d rows, want %d", n, trafficKeys)
	}
	fence := make(map[string]int64)
	for x, err := range s.List(t.Context(), idempotency.Filter{Namespace: "ns"}) {
		if err != nil {
			t.Fatal(err)
		}
		fence[x.ID.Key] = x.Fence
		if f, ok := l.done[x.ID.Key]; ok && (f != x.Fence || x.Outcome != idempotency.Done) {
			t.Errorf("%q was done with fence %d; now it has fence %d and outcome %d", x.ID.Key, f, x.Fence, x.Outcome)
		}
	}
	for f, key := range l.won {
		if fence[key] < f {
			t.Errorf("%q was won with fence %d; now it has fence %d", key, f, fence[key])
		}
	}
	if l.kills == 0 || len(l.done) == 0 {
		t.Errorf("%d kills and %d ends show nothing", l.kills, len(l.done))
	}
	var said string
	if err := raw(t, path).QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&said); err != nil || said != "ok" {
		t.Errorf("integrity: %s %v", said, err)
	}
}
