package fleet

import (
	"encoding/json"
	"time"
)

// The kinds of events. A replica reports all but Exited, which its end of the pipe does.
const (
	Up      = "up"       // the process runs, and waits for Fleet.Tell
	Joined  = "joined"   // it gossips at Addr; a replica waits for Fleet.Go
	Owners  = "owners"   // at At it saw Names as the members that own keys, and the Reasons of others
	Started = "started"  // a handler started: Job, Due, At
	Refused = "refused"  // the store refused a claim: Cause
	TakenUp = "taken up" // it took up an orphaned run
	Memory  = "memory"   // its peak resident memory is Bytes
	Usage   = "usage"    // until At it has used CPU, and made Calls calls of the store; a member without a scheduler has Sent and Received
	Done    = "done"     // it did what Fleet.Tell told it: from At, for Took
	Exited  = "exited"   // the process has ended, with Err
)

// Event is what a replica reports, and its end. Replica and Pid are always set, and the fields its kind names.
type Event struct {
	Replica        string            `json:"-"`
	Pid            int               `json:"-"`
	Kind           string            `json:"kind"`
	Addr           string            `json:"addr,omitempty"`
	Names          []string          `json:"names,omitempty"`
	Reasons        map[string]string `json:"reasons,omitempty"` // by name: why it owns nothing; told by a member without a scheduler
	Job            string            `json:"job,omitempty"`
	Due            time.Time         `json:"due,omitzero"`
	At             time.Time         `json:"at,omitzero"`
	Cause          string            `json:"cause,omitempty"`
	Bytes          int64             `json:"bytes,omitempty"`
	CPU            time.Duration     `json:"cpu,omitempty"` // user and system; 0 where the system does not tell
	Calls          int64             `json:"calls,omitempty"`
	Sent, Received int64             `json:",omitempty"` // bytes of gossip
	Took           time.Duration     `json:"took,omitempty"`
	Doc            json.RawMessage   `json:"doc,omitempty"` // what a kind of the caller's own has to tell
	Err            error             `json:"-"`             // Exited: nil for status 0
}
