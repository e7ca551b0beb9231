package storecut

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/idempotency"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCutStore makes each call while the store is cut: it hangs until its context ends, and gets nowhere.
func TestCutStore(t *testing.T) {
	t.Parallel()
	for m := range reflect.TypeFor[idempotency.Store]().Methods() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := New(nil, nil) // a call that got through would panic
				s.Cut(true)
				call := reflect.ValueOf(s).MethodByName(m.Name)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				args := []reflect.Value{reflect.ValueOf(ctx)}
				for i := 1; i < call.Type().NumIn(); i++ {
					args = append(args, reflect.Zero(call.Type().In(i)))
				}
				begun := time.Now()
				answers := call.Call(args)
				if err, _ := answers[len(answers)-1].Interface().(error); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
					t.Errorf("%v after %s", err, time.Since(begun))
				}
			})
		})
	}
}

// slow is a store that takes a second to open a session.
type slow struct{ idempotency.Store }

func (s slow) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	<-time.After(time.Second)
	return s.Store.OpenSession(ctx, o)
}

// TestLostAnswer cuts the store while a call is under way: it has happened, and nobody hears of it. Mended, the next is
// answered, after the delay.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := idempotency.NewMemory(nil)
		s := New(slow{memory}, func() time.Duration { return time.Second })
		o := idempotency.Opening{Namespace: "test", Replica: "a", Boot: "b", Partitions: 256, Lease: time.Minute, Horizon: time.Hour, Retention: 2 * time.Hour, Tolerance: time.Minute}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		time.AfterFunc(1500*time.Millisecond, func() { s.Cut(true) })
		if got, _, err := s.OpenSession(ctx, o); !errors.Is(err, context.DeadlineExceeded) || got != (idempotency.Session{}) {
			t.Errorf("the answer came: %v, %v", got, err)
		}
		s.Cut(false)
		begun := time.Now()
		got, _, err := s.OpenSession(t.Context(), o)
		if err != nil || got.ID != 2 || time.Since(begun) != 2*time.Second {
			t.Errorf("the second session is %v, %v, after %s", got, err, time.Since(begun))
		}
	})
}
