package rule

import (
	"testing"

	"github.com/belfry-go/belfry/idempotency"
)

// A completion is confirmed where it is on record, and only there; what is no completion may be late.
func TestLate(t *testing.T) {
	const (
		done, failed, wait = idempotency.Done, idempotency.Failed, idempotency.Wait
		waiting, ended     = idempotency.Waiting, idempotency.Ended
	)
	for _, x := range []struct {
		says  idempotency.Outcome
		state idempotency.State
		is    idempotency.Outcome
		want  idempotency.FinishAnswer
	}{
		{done, ended, done, idempotency.Already},
		{done, ended, failed, idempotency.Fenced},
		{done, ended, idempotency.Skipped, idempotency.Fenced},
		{done, waiting, 0, idempotency.Fenced},
		{failed, ended, done, idempotency.Completed},
		{wait, ended, done, idempotency.Completed},
		{failed, ended, failed, idempotency.Already},
		{failed, waiting, 0, idempotency.Already},
		{wait, ended, failed, idempotency.Already},
		{wait, waiting, 0, idempotency.Already},
	} {
		if got := Late(idempotency.Finish{Outcome: x.says}, x.state, x.is); got != x.want {
			t.Errorf("finish %v of what is %v %v: answer %d, want %d", x.says, x.state, x.is, got, x.want)
		}
	}
}
