package demo

import (
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	good := Options{Nights: 3, Customers: 1000, Replicas: 3, Kills: 1}
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   []string // parts of the error; none: it is good
	}{
		{"the default", func(*Options) {}, nil},
		{"many customers", func(o *Options) { o.Customers, o.Replicas, o.Every = 20000, 5, 15*time.Second }, nil},
		{"every replica killed", func(o *Options) { o.Kills = 5 }, nil},
		{"one of each", func(o *Options) { *o = Options{Nights: 1, Customers: 1, Replicas: 1} }, nil},
		{"the largest", func(o *Options) { *o = Options{Nights: 100, Customers: 200_000, Replicas: 20, Kills: 20} }, nil},
		{"nothing", func(o *Options) { *o = Options{} }, []string{"--nights 0", "--customers 0", "--replicas 0"}},
		{"too much", func(o *Options) { *o = Options{Nights: 101, Customers: 200_001, Replicas: 21, Kills: 21} },
			[]string{"--nights 101: give 1 to 100", "--customers 200001", "--replicas 21", "--kills 21"}},
		{"negative", func(o *Options) { o.Kills, o.Every = -1, -time.Second }, []string{"--kills -1", "--every -1s"}},
		{"no second night", func(o *Options) { o.Nights = 1 }, []string{"--kills 1", "--nights 2 or more, or --kills 0"}},
		{"half seconds", func(o *Options) { o.Every = 8500 * time.Millisecond }, []string{"--every 8.5s: give whole seconds"}},
		{"no time for the kill", func(o *Options) { o.Every = 3 * time.Second }, []string{"--every 3s", "need 6s or more"}},
		{"no time for so many", func(o *Options) { o.Customers, o.Kills, o.Every = 40_000, 0, 5*time.Second }, []string{"need 11s or more"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := good
			c.change(&o)
			err := o.withDefaults().validate()
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("got %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o           Options
		concurrency int
		latency     time.Duration
	}{
		{Options{Customers: 1000, Replicas: 3, Every: 8 * time.Second}, 64, 384 * time.Millisecond},
		{Options{Customers: 1, Replicas: 3, Every: 8 * time.Second}, 1, maxLatency},
		{Options{Customers: 200_000, Replicas: 1, Every: time.Second}, 64, minLatency},
	} {
		if n, d := c.o.concurrency(), c.o.latency(); n != c.concurrency || d != c.latency {
			t.Errorf("%+v: %d at once, %v each; want %d, %v", c.o, n, d, c.concurrency, c.latency)
		}
	}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 10, 1, 4, 0, 0, 1, time.UTC)
	nights := Options{Nights: 2, Every: 8 * time.Second}.schedule(now)
	if len(nights) != 2 || !nights[0].Equal(now.Add(4*time.Second-1)) || nights[1].Sub(nights[0]) != 8*time.Second {
		t.Errorf("got %v", nights)
	}
}
