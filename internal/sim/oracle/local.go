package oracle

// Starts is how many runs of an efficiency job were told.
func (o *Oracle) Starts(name string) int { return o.starts[name] }

// Fired tells that a run of an efficiency job starts for the first time. No store knows of it.
func (o *Oracle) Fired(id ID) {
	o.fired[id]++
	o.starts[id.Job]++
}

// Calm tells that a calm begins. What efficiency jobs ran before it is none of it: a host whose clock was ahead has run dues
// that are to come.
func (o *Oracle) Calm() { clear(o.fired) }

// Lone demands that each due of an efficiency job in (from, to] ran once since the calm began.
func (o *Oracle) Lone(name string, s Schedule, from, to int64) {
	for _, t := range s.dues(nil, from, to) {
		if n := o.fired[ID{Job: name, Key: name, Due: t}]; n != 1 {
			o.fail("I5", "due %d of the efficiency job %s ran %d times in the calm", t, name, n)
		}
	}
}
