package sim

import "time"

// Stats counts what happened in a world.
type Stats struct {
	Events, Calls, Started, Killed, Hedged, HedgedRetries, TakenUp, Lost, Problems, Hints, Leaders, Termless int

	Refused  map[string]int           // by cause
	Missed   map[string]int64         // dues decided as missed, by job
	Finished map[string]int           // attempts, by reason; a done one by "done"
	Late     map[string]time.Duration // of the first start of a run after it should have started: the largest, by job
}

func newStats() Stats {
	return Stats{Refused: map[string]int{}, Missed: map[string]int64{}, Finished: map[string]int{}, Late: map[string]time.Duration{}}
}
