package idempotency

import (
	"context"
	"errors"
	"iter"
	"time"
)

// MaxBatch is the most elements that one call of a store takes. A caller with
// more makes more calls; a store refuses a larger batch with an error.
const MaxBatch = 1000

var (
	// ErrSessionDead is returned by every call that demands a live session when
	// the session has lapsed, was closed or was marked dead. It is for good: the
	// caller opens a new session. Nothing of the call was done.
	ErrSessionDead = errors.New("idempotency: session is dead")

	// ErrRefused is wrapped by an error of OpenSession that no repetition can
	// mend, such as another number of partitions. Its text says what to do.
	ErrRefused = errors.New("idempotency: the store refuses this replica")

	// ErrRejected is wrapped by an error of Submit that no repetition can mend, such as a command about a run that has
	// ended. Its text says why and what to do. Nothing was done or recorded.
	ErrRejected = errors.New("idempotency: the command is rejected")
)

// Store is the contract that every driver passes storetest with.
//
// Laws that hold for all of it:
//
//   - A call is atomic, and linearizable with all other calls of all processes:
//     it happens whole at one instant between its start and its return, or not
//     at all. A call that returned an error may have happened, may yet happen
//     later, or may never happen; callers repeat it as it was.
//   - All calls but Finish and the History ones take a Session and demand, in the
//     same transaction, that it is live: its row is neither expired by the
//     store's clock nor marked dead. Else they do nothing and return
//     ErrSessionDead.
//   - Every call ends soon after its context; the caller gives each a deadline.
//   - The clock is the store's alone. Instants are UTC, truncated to the
//     microsecond; dues are whole seconds. The zero time means none.
//   - Strings are bytes: case, trailing space, accents, NUL and emoji stay
//     distinct and round-trip. A key over 255 bytes or an empty one is refused
//     with an error, and with it its whole batch.
//   - Namespaces never see each other.
//   - Answers stand in the order of what was asked.
//
// All methods are safe for concurrent use.
type Store interface {
	Sessions
	Entries
	Runs
	Passes
}

// Sessions are the replicas' leases.
type Sessions interface {
	// OpenSession opens a session that is live until its lease ends, unless it
	// is renewed. A namespace's first session fixes the number of partitions;
	// another number is refused with an error that wraps ErrRefused.
	OpenSession(ctx context.Context, o Opening) (Session, Renewal, error)

	// RenewSession makes the lease end one lease after the store's now. A
	// lapsed session never lives again.
	RenewSession(ctx context.Context, s Session) (Renewal, error)

	// CloseSession marks the session itself dead. Its running runs become
	// orphans at once. Closing a dead session is no error.
	CloseSession(ctx context.Context, s Session) error

	// MarkDead marks those of the given sessions dead that are not live. Only
	// runs of a marked session can be taken up: a clock that steps back cannot
	// revive a session whose runs are gone.
	MarkDead(ctx context.Context, s Session, dead []int64) error
}

// Entries are what is scheduled, and up to where every due has been decided.
type Entries interface {
	// Declare announces exactly the given definitions as this session's, of which
	// there may be more than MaxBatch; those it announced before and does not
	// repeat are withdrawn. A call whose nonce is below that of another Declare of the session
	// came late, and changes nothing. A job seen for the
	// first time gets an entry with the declaration's Opened and Next; so does a job whose entry has the zero Opened,
	// if the declaration's is not; and one that was retired, with a missed (retired) range, counted as one, from the first second after its
	// old Opened to the new one, where both are set and there is such a second: it is retired no more. Here, too, Opened never moves back: an entry keeps a later one, and its Next. The
	// store counts, with a counter and not a clock, when each (job, hash) was
	// first seen. In force is, among the definitions that live sessions
	// announce, the one of the highest Revision, then the one first seen last.
	// Nothing else of an entry changes here. Answered are the entries of the
	// declared jobs, in order; the zero Entry where a late call names a job that has none.
	Declare(ctx context.Context, s Session, nonce int64, d []Declaration) ([]Entry, error)

	// Decide moves entries on. A decision is won when its entry still is as Seen says (Opened, Hash, pause window),
	// Opened stays as it was, or moves on, but not above the store's now + tolerance, the session announced Hash, and Hash
	// is the entry's or in force. Opened never moves back, also where the clock has: what was decided may have run,
	// and the rows that would tell may be gone. A won decision writes, all at once: Opened, Next and the definition Hash into the
	// entry; the Ranges; and for each due of Run either an open due (Keyed), or a run of the job's own key (the entry's
	// Key, or the job's name):
	//
	//   - when a run of the same (job, key) that this decision did not write is
	//     running exclusively: waiting where CatchUp, whatever Overlap says; else, unless OverlapAllow, waiting where that run's due is
	//     newer, whatever Overlap says; waiting where OverlapCancel, which overtakes as Claim.Overtake does; waiting where
	//     OverlapQueue and no run of the key that this decision did not write waits; else skipped (overlap);
	//   - else, oldest due first, running under (session, nonce), exclusively,
	//     while Claim allows and no run of this decision already holds the key; or, where OverlapAllow, not exclusively, while Claim allows;
	//   - else waiting, its wake time the store's now.
	//
	// A due that already has its row, or is open or closed, is left as it is. A decision that was won by this same (session,
	// nonce) is answered won again. Runs of the answer are this decision's: running only while they are still held
	// under (session, nonce).
	Decide(ctx context.Context, s Session, nonce int64, d []Decision) ([]Decided, error)

	// Lagging returns what this replica may take now, by its ranks and its
	// session's definitions. Reads only.
	Lagging(ctx context.Context, s Session, q LagQuery) (Lag, error)

	// Retire counts, for each job that no live session announces, the time since any session's last count, of which at most two
	// minutes: a fleet that was down counts nothing. A job that is announced counts from zero again. One that has
	// come to after is retired, and what this says is done at each later count too, while it is: its open dues are closed, with a missed (retired) range of one for each; its
	// runs that wait end skipped (retired); those that run under sessions which are not live, these being marked dead, end
	// failed (abandoned). Answered are the jobs that nobody announces, by name; not those that were retired before.
	Retire(ctx context.Context, s Session, after time.Duration) ([]Orphan, error)
}

// Runs are the occurrences' rows.
type Runs interface {
	// Claim claims each run for (session, nonce). The first rule that applies answers.
	//
	// An insert, which is for dues of jobs with keys:
	//
	//	Won              the row is running under this (session, nonce): what was won is returned, whatever definition is in force now
	//	StaleDefinition  the entry's definition in force has another hash than Claim.Hash, or the session has not announced that
	//	Taken            the row exists
	//	Early            due > store's now + tolerance
	//	Expired          due < store's now - horizon; OnExpired, if set, is recorded where the due is open
	//	Closed           the due is not open
	//	Busy             Exclusive, and a run of (job, key) is running exclusively; OnBusy, if set, is recorded, or OnQueued or OnNewer
	//	Won              a row is written, running, with a new fence
	//
	// A take-up:
	//
	//	Won, StaleDefinition  as above
	//	Taken            there is no row, it has ended, its fence is not Seen, or it is running
	//	                 under a session that is not marked dead
	//	Taken            it is running and told to end: it ends so (see Canceled, Overtaken), its attempts and text as they were
	//	Early            waiting, and its wake time has not come
	//	Busy             Exclusive, and another run of (job, key) is running exclusively
	//	Won              running under this (session, nonce) with a new fence
	//
	// A take-up of a running row raises its crashes by one, unless a live
	// session of the same boot as the dead one exists; it never raises attempt.
	//
	// A fence is drawn while the row that makes it exclusive is held: per (job,
	// key) every claim has a higher fence than all claims that committed
	// before, and no fence is ever used twice in a store.
	//
	// A claim batch that names an open due moves (MovedAt) the session's pass over it.
	Claim(ctx context.Context, s Session, nonce int64, c []Claim) ([]Answer, error)

	// Finish ends runs, or lets them wait, by their fence alone: it needs no live
	// session. Exclusiveness ends with running. A run that is told to end does not wait: it ends as its Cancel says,
	// with the attempts and the text of f. The first rule that applies answers:
	//
	//	Finished   the row was running with this fence
	//	Fenced     there is no row, or its fence is another
	//	Completed  it has ended Done, and f says otherwise: its handler completed it in a transaction of its own
	//	Fenced     f says Done, and it has not ended so: others ended it as it was told to end, or let it wait
	//	Already    it has ended or waits
	Finish(ctx context.Context, namespace string, f []Finish) ([]FinishAnswer, error)

	// Mine returns the runs that are running under the session.
	Mine(ctx context.Context, s Session) ([]Run, error)

	// Prune removes up to limit ended runs, closed dues, ranges and records of commands that are older than the session's retention, oldest
	// first, and nothing of a job at or above its oldest open due. It also removes sessions that are long dead and no
	// run names. It returns how many rows it removed.
	Prune(ctx context.Context, s Session, limit int) (int, error)
}

// Passes are the replicas' progress through the open dues of jobs with keys.
type Passes interface {
	// SavePass ORs Mine and Finished into the session's own pass over each due
	// and moves it; Keys becomes the larger of the two. Won, or Closed where the
	// due is not open. A repetition changes nothing but MovedAt.
	SavePass(ctx context.Context, s Session, p []Pass) ([]Verdict, error)

	// CloseDue closes an open due when the finished bits of all passes, those
	// of dead sessions too, cover every partition; or, with missed, when it is
	// older than the horizon: then missed is recorded. The sum of the passes' Keys stays with the due. It reports whether the
	// due is closed now. The union is tested in the closing transaction.
	CloseDue(ctx context.Context, s Session, job string, due time.Time, missed *Range) (bool, error)
}

// History is a further power of a store: reading what happened and what is. It needs no session.
type History interface {
	// List yields runs in the order of (due, job, key, request), or with Newest in the reverse order. The sequence ends after its
	// first error.
	List(ctx context.Context, f Filter) iter.Seq2[Run, error]

	// Ranges yields the range rows of a job, or of all jobs where job is empty, oldest first.
	Ranges(ctx context.Context, namespace, job string) iter.Seq2[Range, error]

	// Dues yields the dues in [from, to) that were opened of a job with keys, oldest first. The zero to is no bound.
	Dues(ctx context.Context, namespace, job string, from, to time.Time) iter.Seq2[Due, error]

	// Overview returns what is scheduled, open and alive. A namespace that has had no session has no partitions, and is empty.
	Overview(ctx context.Context, namespace string) (Overview, error)

	// Commands yields the records of a job's commands, or of all where job is empty, newest first, and of one instant by request backwards.
	Commands(ctx context.Context, namespace, job string) iter.Seq2[Command, error]
}

// Control is a further power of a store: what people ask for. It needs no session.
type Control interface {
	// Submit applies a command and records it, in one transaction, once: a repetition with the same Request changes nothing, and
	// returns the record of the first; one of another Kind, ID, Last or Actor, as recorded, is rejected; payloads are not compared. A job without an entry, and one that was retired, is
	// rejected; so is a key other than the job's name for a job without keys, but of a Cancel or a Retry, whose run may be of when it had keys. "Waits" means a run's row, waiting, with the store's now as its wake time, the reason "by hand", and
	// no text, attempts or crashes; it keeps its last fence. What else ends here keeps attempts and text.
	//
	//	Pause     the entry's pause begins at the store's now, and is open. Where dues of its last pause are not decided yet
	//	          (PausedUntil > Opened, which is set) it begins where that one did. Changed is 0 where it is paused.
	//	Resume    an open pause ends at the store's now. Changed is 0 where there is none.
	//	Trigger   a run of ID.Key waits, its due the store's now in whole seconds, its Request the command's. ID.Key is the
	//	          job's name, or empty, for a job without keys. Of a job with keys an empty one opens a due at that second for all of them
	//	          (CatchUp, ByHand), without a Payload; Changed is 0 where that was opened already. The record's ID.Due is the due.
	//	Skip      the due ID.Due, which must not be decided (> Opened), is recorded as skipped (by hand): a run's row for ID.Key
	//	          where that is set or the job has no keys; else a closed due that was never opened, and a range of one. Changed is 0 where it is there already and
	//	          was skipped so; rejected where it is there otherwise, and for efficiency jobs, which are not decided here.
	//	Backfill  each of Dues, which must be decided (<= Opened) and above all that Prune ever removed in the namespace. Of a job without
	//	          keys, or of ID.Key where that is set: a run waits, where there is no row of the due, or one that ended missed or
	//	          skipped. Of a job with keys an empty key opens the due for all of them (CatchUp, ByHand), where it was never open; such a due must not be older than the
	//	          horizon of the last session that was opened. Changed counts those that wait or were opened. Rejected for efficiency jobs.
	//	Cancel    the run ID: where it waits it ends skipped (by hand); where it runs, its Cancel becomes Canceled. Changed is 0 where
	//	          that is set already. A run that has ended, or is not there, is rejected.
	//	Retry     the run ID, which must have ended failed: it waits, its attempts and crashes none.
	Submit(ctx context.Context, namespace string, c Command) (Command, error)
}

// Leaders is a further power of a store: who leads a namespace. Its row is an election where Lead has no term, and the record
// of one that was made elsewhere where it has one.
type Leaders interface {
	// Lead makes the session the leader where it may be, and answers who leads then. It may where nobody leads: nobody has ever, or the
	// last leader has resigned, or its session is not live (which is marked dead, as MarkDead does); or where term is above that of who leads. Its term is then term, or where that is 0 a
	// new fence, drawn while the row is held. A session that leads keeps its term, but for a higher one, in which it leads anew. A call that changes nothing writes nothing.
	// Why of a new leader is "nobody led before"; or, behind the name of the one before it and ": ", how that ended: its Why as of then,
	// or "a higher term" where it led still.
	Lead(ctx context.Context, s Session, term int64) (Leader, error)

	// Resign ends the session's leadership of a term, now, and says why: Why becomes "resigned: " and that, or only "resigned" where that is empty. It does nothing where
	// the session does not lead in that term, or does no more, and needs no live session. The namespace has a leader's row only where somebody has led.
	Resign(ctx context.Context, s Session, term int64, why string) error

	// Leader returns who leads, or led last. Where a session ended by itself, Why is "its session ended". It needs no session. Prune keeps the session
	// that the leader's row names.
	Leader(ctx context.Context, namespace string) (Leader, error)
}
