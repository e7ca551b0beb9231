package schedulertest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/scheduler"
)

// No call of a store's contract passes once the process has crashed, however the contract grows.
func TestDoorShuts(t *testing.T) {
	t.Parallel()
	p := &process{}
	p.crashed.Store(true)
	d := reflect.ValueOf(&door{Memory: idempotency.NewMemory(nil), p: p})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	methods := slices.AppendSeq(slices.Collect(reflect.TypeFor[idempotency.Store]().Methods()), reflect.TypeFor[idempotency.Leaders]().Methods())
	for _, m := range methods {
		args := []reflect.Value{reflect.ValueOf(over)}
		for i := 1; i < m.Type.NumIn(); i++ {
			args = append(args, reflect.Zero(m.Type.In(i)))
		}
		out := d.MethodByName(m.Name).Call(args)
		if err, _ := out[len(out)-1].Interface().(error); !errors.Is(err, errCrashed) {
			t.Errorf("%s answers %v", m.Name, err)
		}
	}
}

// Every hook of a user is called, by the replica, until it has crashed; however many hooks there come to be.
func TestHooksEndWithTheirProcess(t *testing.T) {
	t.Parallel()
	called := 0
	var all scheduler.Hooks
	fields := reflect.ValueOf(&all).Elem()
	for i := range fields.NumField() {
		f := fields.Field(i)
		f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value { called++; return nil }))
	}
	p := &process{}
	gated := reflect.ValueOf(p.gated(all))
	callAll := func() {
		for i := range gated.NumField() {
			f := gated.Field(i)
			if f.IsNil() {
				t.Fatalf("%s is left out", gated.Type().Field(i).Name)
			}
			f.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.Zero(f.Type().In(1))})
		}
	}
	if callAll(); called != gated.NumField() {
		t.Errorf("%d of %d were called", called, gated.NumField())
	}
	p.crashed.Store(true)
	if callAll(); called != gated.NumField() {
		t.Errorf("%d were called after the crash", called-gated.NumField())
	}
	if empty := p.gated(scheduler.Hooks{}); !reflect.ValueOf(empty).IsZero() {
		t.Error("hooks that are not set are called")
	}
}

// A crashed process logs nothing, whatever was made of its logger.
func TestLogEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := &process{}
	log := slog.New(gate{slog.NewTextHandler(&b, nil), p}).With("a", 1).WithGroup("g")
	log.Info("before")
	n := b.Len()
	p.crashed.Store(true)
	log.Info("after")
	if n == 0 || b.Len() != n {
		t.Errorf("%q", b.String())
	}
}
