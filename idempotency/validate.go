package idempotency

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Bounds of what a store takes, in bytes. Names are namespaces and jobs.
const (
	maxName   = 64
	maxString = 255
	maxText   = 64 << 10
)

// CheckBatch refuses a batch of more than MaxBatch elements, and one with an
// element that check refuses, naming the call and the element. Drivers call it
// before they touch anything, so that all refuse the same in the same words.
func CheckBatch[T any](call string, batch []T, check func(T) error) error {
	if len(batch) > MaxBatch {
		return fmt.Errorf("idempotency: %s: %d elements in one batch; send at most %d", call, len(batch), MaxBatch)
	}
	for i, x := range batch {
		if err := check(x); err != nil {
			return fmt.Errorf("idempotency: %s: element %d: %w", call, i, err)
		}
	}
	return nil
}

// CheckDeclarations checks what Declare takes: any number of jobs, each once.
func CheckDeclarations(d []Declaration) error {
	seen := make(map[string]bool, len(d))
	for _, x := range d {
		if err := x.Validate(); err != nil {
			return err
		}
		if seen[x.Job] {
			return fmt.Errorf("idempotency: declare: job %q is declared twice; declare it once", x.Job)
		}
		seen[x.Job] = true
	}
	return nil
}

// CheckDecisions is CheckBatch for Decide, which takes each entry once: a
// second decision under the same nonce would pass for a repetition.
func CheckDecisions(d []Decision) error {
	seen := make(map[[2]string]bool, len(d))
	return CheckBatch("decide", d, func(x Decision) error {
		e := [2]string{x.Seen.Job, x.Seen.Key}
		if seen[e] {
			return fmt.Errorf("job %q is decided twice; decide it once", x.Job)
		}
		seen[e] = true
		return x.Validate()
	})
}

// CheckCommand refuses a command that no store takes, or no namespace has, with an error that wraps ErrRejected.
func CheckCommand(namespace string, c Command) error {
	if err := errors.Join(CheckNamespace(namespace), c.Validate()); err != nil {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	return nil
}

// CheckLead refuses a term that Lead cannot take.
func CheckLead(term int64) error {
	if term < 0 {
		return fmt.Errorf("idempotency: lead: term %d; set the elector's, or 0 to be elected by the store", term)
	}
	return nil
}

// CheckResign refuses what Resign cannot take.
func CheckResign(term int64, why string) error {
	errs := []error{checkString("why", why, 0, maxString)}
	if term < 1 {
		errs = append(errs, fmt.Errorf("term %d; set the one that Lead answered", term))
	}
	if !utf8.ValidString(why) {
		errs = append(errs, errors.New("why is not valid UTF-8; replace the bytes that are not"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("idempotency: resign: %w", err)
	}
	return nil
}

// CheckPasses is CheckBatch for SavePass in a store of that many partitions.
func CheckPasses(p []Pass, partitions int) error {
	return CheckBatch("save pass", p, func(x Pass) error { return x.Validate(partitions) })
}

// CheckClose refuses what CloseDue cannot take.
func CheckClose(job string, due time.Time, missed *Range) error {
	err := errors.Join(checkName("job", job), checkDue(due))
	if missed != nil {
		err = errors.Join(err, missed.validate(job))
	}
	if err != nil {
		return fmt.Errorf("idempotency: close due: %w", err)
	}
	return nil
}

// Validate refuses an opening that no store takes, with all its problems.
func (o Opening) Validate() error {
	errs := []error{
		CheckNamespace(o.Namespace),
		checkString("replica", o.Replica, 1, maxString),
		checkString("boot", o.Boot, 1, maxString),
	}
	if p := o.Partitions; p < 1 || p > slots || p&(p-1) != 0 {
		errs = append(errs, fmt.Errorf("%d partitions; set a power of two up to %d", p, slots))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"lease", o.Lease}, {"horizon", o.Horizon}, {"retention", o.Retention}} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s is %v; set it above zero", d.name, d.value))
		}
	}
	if o.Tolerance < 0 {
		errs = append(errs, fmt.Errorf("tolerance is %v; set zero or more", o.Tolerance))
	}
	if o.Retention <= o.Horizon {
		errs = append(errs, fmt.Errorf("retention %v is not above the horizon %v; raise it, else a pruned run could run again", o.Retention, o.Horizon))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("idempotency: open session: %w", err)
	}
	return nil
}

// Validate refuses a declaration that no store takes.
func (d Declaration) Validate() error {
	if d.Opened.IsZero() && !d.Next.IsZero() {
		return fmt.Errorf("job %q: opened is not set but next is %v; set up to where dues count as decided, or neither", d.Job, d.Next)
	}
	return errors.Join(d.Definition.validate(), checkNext(d.Next))
}

func (d Definition) validate() error {
	return errors.Join(
		checkName("job", d.Job),
		checkString("schedule", d.Schedule, 0, maxText),
		checkString("hash", d.Hash, 1, maxString),
	)
}

// maxErrors is how many problems one element of a batch may have, so that looking for them takes no memory where there are none.
const maxErrors = 10

// Validate refuses a decision that no store takes: among others one whose dues
// are not all in (Seen.Opened, Opened], ascending.
func (d Decision) Validate() error {
	errs := append(make([]error, 0, maxErrors), d.Definition.validate(), checkNext(d.Next))
	if d.Seen.Job != d.Job {
		errs = append(errs, fmt.Errorf("job %q decides the entry of job %q; decide its own", d.Job, d.Seen.Job))
	}
	if d.Overlap < OverlapSkip || d.Overlap > OverlapCancel {
		errs = append(errs, fmt.Errorf("overlap %d is unknown; use one of the constants", d.Overlap))
	}
	if d.Claim < 0 || d.Term < 0 {
		errs = append(errs, fmt.Errorf("claim is %d, term %d; set zero or more", d.Claim, d.Term))
	}
	if len(d.Run) > MaxBatch || len(d.Ranges) > MaxBatch {
		errs = append(errs, fmt.Errorf("%d dues and %d ranges; decide at most %d of each at once", len(d.Run), len(d.Ranges), MaxBatch))
	}
	errs = append(errs, d.checkRun())
	for _, r := range d.Ranges {
		if err := r.validate(d.Job); err != nil {
			errs = append(errs, err)
			break
		}
	}
	return errors.Join(errs...)
}

// checkRun returns the first problem of the dues.
func (d Decision) checkRun() error {
	last := d.Seen.Opened
	for _, due := range d.Run {
		if err := checkDue(due); err != nil {
			return err
		}
		if !due.After(last) || due.After(d.Opened) {
			return fmt.Errorf("due %v is out of order or not in (%v, %v]; decide ascending dues that are not decided yet", due, d.Seen.Opened, d.Opened)
		}
		last = due
	}
	return nil
}

func (r Range) validate(job string) error {
	switch {
	case r.Job != job:
		return fmt.Errorf("a range of job %q is recorded for job %q; record its own", r.Job, job)
	case r.From.IsZero() || r.To.Before(r.From):
		return fmt.Errorf("range [%v, %v] is empty or has no start; set From <= To", r.From, r.To)
	case r.Count < 1:
		return fmt.Errorf("range of %d dues; record ranges of one due or more", r.Count)
	case r.Outcome != Skipped && r.Outcome != Missed:
		return fmt.Errorf("range with outcome %d; a range is skipped or missed", r.Outcome)
	}
	return checkString("reason", r.Reason, 0, maxString)
}

// Validate refuses a question that no store of that many partitions answers.
// A bitmap of no bytes means no partition.
func (q LagQuery) Validate(partitions int) error {
	if q.Grace < 0 || q.Limit < 0 || len(q.Ranks) > MaxBatch {
		return fmt.Errorf("idempotency: lagging: grace %v, limit %d, %d ranks; set zero or more, and at most %d ranks", q.Grace, q.Limit, len(q.Ranks), MaxBatch)
	}
	for r, b := range q.Ranks {
		if err := checkBitmap(b, partitions); err != nil {
			return fmt.Errorf("idempotency: lagging: rank %d: %w", r, err)
		}
	}
	return nil
}

// Validate refuses an ID that no store takes. A request is any string of at
// most 255 bytes here; who names requests bounds them more.
func (id ID) Validate() error {
	return errors.Join(
		checkName("job", id.Job),
		checkString("key", id.Key, 1, maxString),
		checkString("request", id.Request, 0, maxString),
		checkDue(id.Due),
	)
}

// Validate refuses a claim that no store takes: among others one with a field
// that would be without effect.
func (c Claim) Validate() error {
	errs := append(make([]error, 0, maxErrors), c.ID.Validate(), checkString("hash", c.Hash, 1, maxString))
	switch {
	case c.TakeUp && (c.OnBusy != nil || c.OnQueued != nil || c.OnNewer != nil || c.OnExpired != nil || c.Overtake):
		errs = append(errs, errors.New("a take-up records nothing; leave OnBusy, OnQueued, OnNewer and OnExpired nil, and Overtake false"))
	case c.OnNewer != nil && (c.OnBusy == nil || c.OnNewer.Outcome != Wait || !c.Exclusive):
		errs = append(errs, errors.New("OnNewer is a wait of an exclusive claim, instead of its OnBusy; set both, or leave it nil"))
	case (c.OnQueued != nil || c.Overtake) && (c.OnBusy == nil || c.OnBusy.Outcome != Wait || !c.Exclusive):
		errs = append(errs, errors.New("OnQueued and Overtake are for an exclusive claim that waits where the key is held; set OnBusy to a wait"))
	case c.OnQueued != nil && c.Overtake:
		errs = append(errs, errors.New("a claim that overtakes is never queued behind what it ends; leave OnQueued nil, or Overtake false"))
	case c.Term < 0:
		errs = append(errs, fmt.Errorf("term %d; set the leader's, or 0", c.Term))
	case c.TakeUp && c.Seen < 0, !c.TakeUp && c.Seen != 0:
		errs = append(errs, fmt.Errorf("seen fence %d; set that of the run to take up, and none for an insert", c.Seen))
	}
	for _, f := range []*Finish{c.OnBusy, c.OnQueued, c.OnNewer, c.OnExpired} {
		if f == nil {
			continue
		}
		if f.Outcome != Skipped && f.Outcome != Missed && f.Outcome != Wait {
			errs = append(errs, fmt.Errorf("a record with outcome %d; a run that never ran is skipped, missed or waits", f.Outcome))
		}
		errs = append(errs, f.content())
	}
	return errors.Join(errs...)
}

// Validate refuses a finish that no store takes. A run that ran is never missed.
func (f Finish) Validate() error {
	errs := append(make([]error, 0, maxErrors), f.ID.Validate(), f.content())
	if f.Fence < 1 {
		errs = append(errs, fmt.Errorf("fence %d; finish with the fence of the claim", f.Fence))
	}
	switch f.Outcome {
	case Done, Failed, Skipped, Wait:
	default:
		errs = append(errs, fmt.Errorf("outcome %d; a run ends done, failed or skipped, or waits", f.Outcome))
	}
	return errors.Join(errs...)
}

// Validate refuses a command that no store takes.
func (c Command) Validate() error {
	errs := []error{
		checkRequest(c.Request), checkName("job", c.ID.Job),
		checkString("key", c.ID.Key, 0, maxString), checkString("request of the run", c.ID.Request, 0, maxString),
		checkString("actor", c.Actor, 1, maxString), checkString("reason", c.Reason, 0, maxText),
	}
	if c.Kind < Pause || c.Kind > Retry {
		errs = append(errs, fmt.Errorf("kind %d is unknown; use one of the constants", c.Kind))
	}
	if !utf8.ValidString(c.Actor) || !utf8.ValidString(c.Reason) {
		errs = append(errs, errors.New("actor or reason is not valid UTF-8; replace the bytes that are not"))
	}
	if c.Kind != Trigger && c.Payload != nil || len(c.Payload) > maxText {
		errs = append(errs, fmt.Errorf("a payload of %d bytes; only a trigger has one, of at most %d", len(c.Payload), maxText))
	}
	if c.Kind == Skip || c.Kind == Cancel || c.Kind == Retry {
		errs = append(errs, checkDue(c.ID.Due))
	}
	return errors.Join(append(errs, c.checkDues())...)
}

func (c Command) checkDues() error {
	if c.Kind != Backfill && len(c.Dues) > 0 || c.Kind == Backfill && (len(c.Dues) == 0 || len(c.Dues) > MaxBatch) {
		return fmt.Errorf("%d dues; name 1 to %d for a backfill, else none", len(c.Dues), MaxBatch)
	}
	for i, due := range c.Dues {
		if err := checkDue(due); err != nil {
			return err
		}
		if i > 0 && !due.After(c.Dues[i-1]) {
			return fmt.Errorf("due %v is out of order; name them ascending, each once", due)
		}
	}
	return nil
}

// maxRequest bounds the name of a command, and of the run that it asks for.
const maxRequest = 36

func checkRequest(s string) error {
	if len(s) > maxRequest {
		return fmt.Errorf("request %q: %d bytes; use at most %d", clip(s), len(s), maxRequest)
	}
	return checkName("request", s)
}

func (f Finish) content() error {
	errs := make([]error, 0, maxErrors)
	if f.Attempt < 0 {
		errs = append(errs, fmt.Errorf("attempt %d; set zero or more", f.Attempt))
	}
	if f.Outcome == Wait && f.Wake.IsZero() {
		errs = append(errs, errors.New("a wait without an end; set Wake"))
	}
	if !utf8.ValidString(f.Text) {
		errs = append(errs, errors.New("text is not valid UTF-8; replace the bytes that are not"))
	}
	return errors.Join(append(errs,
		checkString("reason", f.Reason, 0, maxString),
		checkString("text", f.Text, 0, maxText))...)
}

// Validate refuses a pass that no store of that many partitions takes. A bitmap
// of no bytes has no bits.
func (p Pass) Validate(partitions int) error {
	errs := []error{
		checkName("job", p.Job), checkDue(p.Due),
		checkBitmap(p.Mine, partitions), checkBitmap(p.Finished, partitions),
	}
	if p.Keys < 0 {
		errs = append(errs, fmt.Errorf("%d keys; set zero or more", p.Keys))
	}
	return errors.Join(errs...)
}

// CheckNamespace refuses what is not [A-Za-z0-9._-]{1,64}.
func CheckNamespace(namespace string) error {
	return checkName("namespace", namespace)
}

func checkName(what, s string) error {
	ok := s != "" && len(s) <= maxName
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
	}
	if !ok {
		return fmt.Errorf("%s %q: not a name; use 1 to %d of A-Z a-z 0-9 . _ -", what, clip(s), maxName)
	}
	return nil
}

func checkString(what, s string, low, high int) error {
	switch {
	case len(s) < low:
		return fmt.Errorf("%s is empty; set it", what)
	case len(s) > high:
		return fmt.Errorf("%s %q: %d bytes; use at most %d", what, clip(s), len(s), high)
	}
	return nil
}

// clip keeps an error that quotes s readable.
func clip(s string) string {
	if len(s) > maxName {
		return s[:maxName] + "…"
	}
	return s
}

func checkDue(due time.Time) error {
	if due.IsZero() || due.Nanosecond() != 0 {
		return fmt.Errorf("due %v: not a whole second; set one", due)
	}
	return nil
}

func checkNext(next time.Time) error {
	if next.IsZero() {
		return nil
	}
	return checkDue(next)
}

func checkBitmap(b []byte, partitions int) error {
	if len(b) == 0 {
		return nil
	}
	if want := (partitions + 7) / 8; len(b) != want {
		return fmt.Errorf("a bitmap of %d bytes for %d partitions; use %d bytes", len(b), partitions, want)
	}
	if partitions < 8 && b[0]>>partitions != 0 {
		return fmt.Errorf("a bitmap with a bit at or above partition %d; clear it", partitions)
	}
	return nil
}
