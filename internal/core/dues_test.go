package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

func named(name string) *job { return &job{Job: jobs.Job{Name: name}} }

func names(list []*job) (s []string) {
	for _, j := range list {
		s = append(s, j.Name)
	}
	return s
}

func TestDuesByInstantThenName(t *testing.T) {
	t.Parallel()
	var d dues
	var all []*job
	for i := range 300 { // several batches
		j := named(fmt.Sprintf("%03d", (i*7)%300))
		all = append(all, j)
		d.set(j, epoch.Add(-time.Duration(i%2)*time.Second))
	}
	var want []string
	for _, odd := range []int{1, 0} {
		var half []string
		for i := odd; i < 300; i += 2 {
			half = append(half, all[i].Name)
		}
		slices.Sort(half)
		want = append(want, half...)
	}
	later := named("later")
	d.set(later, epoch.Add(time.Second))
	if got := names(d.take(epoch.UnixMicro())); !slices.Equal(got, want) {
		t.Fatalf("took %v, want %v", got, want)
	}
	if got := names(d.take(epoch.UnixMicro())); got != nil {
		t.Fatalf("took %v twice", got)
	}
	d.set(all[0], epoch)
	d.set(all[1], epoch)
	d.set(all[1], time.Time{})
	if got := names(d.take(epoch.UnixMicro())); !slices.Equal(got, []string{all[0].Name}) {
		t.Errorf("took %v, want what was set again", got)
	}
	if at, ok := d.first(); !ok || !at.Equal(later.next) {
		t.Errorf("first %v, %t, want %v", at, ok, later.next)
	}
	d.set(later, time.Time{})
	if at, ok := d.first(); ok || later.index != 0 {
		t.Errorf("first %v of none", at)
	}
}

// A due between two microseconds is not taken early, and the instant that the loop waits for is one at which it is taken: else
// it would spin.
func TestDuesAreNeverEarly(t *testing.T) {
	t.Parallel()
	for _, next := range []time.Time{
		epoch, epoch.Add(time.Nanosecond), epoch.Add(999 * time.Nanosecond), epoch.Add(-time.Nanosecond),
		time.Date(1969, 12, 31, 23, 59, 59, 1, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), time.Unix(-62135596800, 1),
	} {
		var d dues
		j := named("j")
		d.set(j, next)
		if d.take(next.Add(-time.Nanosecond).UnixMicro()) != nil {
			t.Errorf("%v was taken early", next)
		}
		at, ok := d.first()
		if late := at.Sub(next); !ok || late < 0 || late >= time.Microsecond {
			t.Errorf("%v: first %v, %t", next, at, ok)
		}
		if got := d.take(at.UnixMicro()); !slices.Equal(got, []*job{j}) {
			t.Errorf("%v is not taken at %v: %v", next, at, got)
		}
	}
}
