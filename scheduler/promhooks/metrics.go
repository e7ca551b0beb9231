package promhooks

import "github.com/prometheus/client_golang/prometheus"

// metrics is one collector, so that all of it is registered or nothing.
type metrics struct {
	due, started, done, missed, fenced, takeUps, hedges, stuck *prometheus.CounterVec // by job
	failed, skipped, waits                                     *prometheus.CounterVec // by job and reason
	refused                                                    *prometheus.CounterVec // by job and cause
	lateness                                                   *prometheus.HistogramVec
	runTime                                                    *prometheus.HistogramVec
	calls                                                      *prometheus.HistogramVec
	callErrors                                                 *prometheus.CounterVec
	moves                                                      prometheus.Counter
	members, offset, running, workers                          prometheus.Gauge
	orphaned, retired                                          *prometheus.CounterVec // by job
	leader                                                     prometheus.Gauge
	leaderChanges                                              prometheus.Counter

	all []prometheus.Collector
}

// Buckets, in seconds. Lateness is milliseconds in calm, the grace and a lease after a crash, and hours after an outage; a run takes
// milliseconds to hours; a call of the store is bounded by a fifth of the lease.
var (
	lateBuckets = []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400}
	runBuckets  = []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 1800, 3600, 14400}
	callBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
)

func newMetrics() *metrics {
	m := &metrics{}
	m.due = m.counter("due_total", "Dues of correctness jobs that this replica decided, whatever it decided.", "job")
	m.started = m.counter("started_total", "Attempts that began: calls of a job's handler.", "job")
	m.done = m.counter("done_total", "Runs that ended done.", "job")
	m.failed = m.counter("failed_total", "Runs that ended failed, by reason, such as exhausted, permanent, panic, timeout or abandoned.", "job", "reason")
	m.skipped = m.counter("skipped_total", "Dues and runs that ended skipped, by reason, such as paused, overlap, deadline, overtaken or handler.", "job", "reason")
	m.waits = m.counter("waits_total", "Attempts after which the run waits to be taken up again, by reason, such as retry or released.", "job", "reason")
	m.missed = m.counter("missed_total", "Dues that were opened too late and ended missed.", "job")
	m.refused = m.counter("refused_total", "Claims and starts that were refused, by cause. Most are expected: taken means that another replica was first.", "job", "cause")
	m.fenced = m.counter("fenced_total", "Ends of runs that the store refused, since another replica had taken the run over.", "job")
	m.takeUps = m.counter("take_ups_total", "Runs that this replica took up whose replica was gone.", "job")
	m.hedges = m.counter("hedges_total", "Runs that this replica claimed since their owner did not move them.", "job")
	m.stuck = m.counter("stuck_total", "Handlers that did not return within a second after their context had ended.", "job")
	m.lateness = m.histogram("lateness_seconds", "From when a run that was due should have started to its first start, as told at that attempt's end.", lateBuckets, "job")
	m.runTime = m.histogram("run_seconds", "The handler's time of an attempt, by what the attempt ended in: done, failed, skipped or wait.", runBuckets, "job", "outcome")
	m.calls = m.histogram("store_call_seconds", "Time of a call of the store, by method.", callBuckets, "method")
	m.callErrors = m.counter("store_errors_total", "Calls of the store that ended with an error, by method.", "method")
	m.moves = add(m, prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "ring_moves_total", Help: "Partitions that changed their owner, as this replica saw it."}))
	m.members = m.gauge("members", "Members that own keys, as this replica sees it. 0: nobody does.")
	m.offset = m.gauge("clock_offset_seconds", "The store's clock minus this host's, as of the last renewal.")
	m.running = m.gauge("running", "Handlers that have not returned, stuck ones included.")
	m.workers = m.gauge("workers", "How many handlers may run at once on this replica.")
	m.orphaned = m.counter("orphaned_total", "How often this replica found that no live replica has the code of a job: at first and then each hour.", "job")
	m.retired = m.counter("retired_total", "Jobs that this replica retired, since no live replica had had their code for long.", "job")
	m.leader = m.gauge("leader", "1 where this replica leads, else 0; also 0 where it has nothing for a leader.")
	m.leaderChanges = add(m, prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "leader_changes_total", Help: "Changes of who leads, as this replica saw them: that another one leads, or nobody."}))
	return m
}

const namespace = "belfry"

// add makes c part of what is registered.
func add[C prometheus.Collector](m *metrics, c C) C {
	m.all = append(m.all, c)
	return c
}

func (m *metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return add(m, prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels))
}

func (m *metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return add(m, prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels))
}

func (m *metrics) gauge(name, help string) prometheus.Gauge {
	return add(m, prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}))
}

// Describe and Collect make metrics a collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(out)
	}
}

func (m *metrics) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.all {
		c.Collect(out)
	}
}
