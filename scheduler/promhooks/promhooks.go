package promhooks

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// New registers Belfry's metrics and returns the hooks that feed them, for scheduler.Config.Hooks of one Scheduler. They
// never block, and nothing needs to be closed. It refuses a nil registerer, and one that has the metrics already.
func New(r prometheus.Registerer) (scheduler.Hooks, error) {
	if r == nil {
		return scheduler.Hooks{}, errors.New("promhooks: no registerer; pass prometheus.NewRegistry(), or prometheus.DefaultRegisterer")
	}
	m := newMetrics()
	if err := r.Register(m); err != nil {
		return scheduler.Hooks{}, fmt.Errorf("promhooks: %w; make one set of hooks for a registerer, or tell several Schedulers of one process apart: "+
			`prometheus.WrapRegistererWith(prometheus.Labels{"scheduler": "billing"}, registerer)`, err)
	}
	return m.hooks(), nil
}

func (m *metrics) hooks() scheduler.Hooks {
	return scheduler.Hooks{
		Started:  func(_ context.Context, o jobs.Occurrence) { m.started.WithLabelValues(o.Job).Inc() },
		Finished: m.onFinished,
		Refused:  m.onRefused,
		Decided:  m.onDecided,
		TakenUp:  func(_ context.Context, o scheduler.TakenUp) { m.takeUps.WithLabelValues(o.Job).Inc() },
		Hedged:   func(_ context.Context, o jobs.Occurrence) { m.hedges.WithLabelValues(o.Job).Inc() },
		Stuck:    func(_ context.Context, o jobs.Occurrence) { m.stuck.WithLabelValues(o.Job).Inc() },
		Moved:    m.onMoved,
		Called:   m.onCalled,
		Renewed:  func(_ context.Context, r scheduler.Renewed) { m.offset.Set(r.Offset.Seconds()) },
		Load:     m.onLoad,
		Led:      m.onLed,
		Orphaned: m.onOrphaned,
	}
}

func (m *metrics) onFinished(_ context.Context, f scheduler.Finished) {
	if ran := f.Took > 0 || f.Outcome == idempotency.Done; ran {
		m.runTime.WithLabelValues(f.Job, f.Outcome.String()).Observe(f.Took.Seconds())
	}
	if f.First {
		m.lateness.WithLabelValues(f.Job).Observe(f.Late.Seconds())
	}
	switch f.Outcome {
	case idempotency.Done:
		m.done.WithLabelValues(f.Job).Inc()
	case idempotency.Failed:
		m.failed.WithLabelValues(f.Job, f.Reason).Inc()
	case idempotency.Skipped:
		m.skipped.WithLabelValues(f.Job, f.Reason).Inc()
	case idempotency.Wait:
		m.waits.WithLabelValues(f.Job, f.Reason).Inc()
	}
}

// onRefused: two causes have metrics of their own, since they are more than somebody else's success.
func (m *metrics) onRefused(_ context.Context, r scheduler.Refused) {
	switch r.Cause {
	case "fenced":
		m.fenced.WithLabelValues(r.Job).Inc()
	case "overlap":
		m.skipped.WithLabelValues(r.Job, r.Cause).Inc()
	default:
		m.refused.WithLabelValues(r.Job, r.Cause).Inc()
	}
}

func (m *metrics) onDecided(_ context.Context, d scheduler.Decided) {
	m.due.WithLabelValues(d.Job).Add(float64(int64(len(d.Dues)) + d.Missed + d.Paused + d.TooLate))
	m.missed.WithLabelValues(d.Job).Add(float64(d.Missed))
	for reason, n := range map[string]int64{"paused": d.Paused, "deadline": d.TooLate} {
		if n > 0 {
			m.skipped.WithLabelValues(d.Job, reason).Add(float64(n))
		}
	}
}

func (m *metrics) onMoved(_ context.Context, v scheduler.Moved) {
	m.members.Set(float64(len(v.Members)))
	m.moves.Add(float64(len(v.Moves)))
}

func (m *metrics) onCalled(_ context.Context, c scheduler.Call) {
	m.calls.WithLabelValues(c.Name).Observe(c.Took.Seconds())
	if c.Err != nil {
		m.callErrors.WithLabelValues(c.Name).Inc()
	}
}

func (m *metrics) onLoad(_ context.Context, l scheduler.Load) {
	m.running.Set(float64(l.Running))
	m.workers.Set(float64(l.Workers))
}

func (m *metrics) onLed(_ context.Context, l scheduler.Led) {
	mine := 0.0
	if l.Mine {
		mine = 1
	}
	m.leader.Set(mine)
	m.leaderChanges.Inc()
}

func (m *metrics) onOrphaned(_ context.Context, o idempotency.Orphan) {
	if o.Retired {
		m.retired.WithLabelValues(o.Job).Inc()
		return
	}
	m.orphaned.WithLabelValues(o.Job).Inc()
}
