package oracle

// definition is one of a job.
type definition struct{ job, hash string }

// Announced tells the definitions, by job, that a session has declared. One that happens after a younger one of the session changes nothing.
func (o *Oracle) Announced(sessionID, nonce int64, hashes map[string]string) {
	s := o.sessions[sessionID]
	if s == nil || nonce < s.declared {
		return
	}
	s.declared, s.hashes = nonce, hashes
	for job, hash := range hashes {
		if d := (definition{job, hash}); o.seen[d] == 0 {
			o.seen[d] = len(o.seen) + 1
		}
	}
}

// inForce is the definition of a job that counts: of those that live sessions announce, the one first seen last. Empty: none does.
func (o *Oracle) inForce(job string) (hash string) {
	for id, s := range o.sessions {
		if x := s.hashes[job]; x != "" && o.seen[definition{job, x}] > o.seen[definition{job, hash}] && o.live(id) {
			hash = x
		}
	}
	return hash
}

// announces demands that a session has announced the definition by which it does something.
func (o *Oracle) announces(sessionID int64, job, hash, what string) {
	if s := o.sessions[sessionID]; s != nil && s.hashes[job] != hash {
		o.fail("force", "job %s: %s by the definition %s was accepted of session %d, which announces %q", job, what, hash, sessionID, s.hashes[job])
	}
}

// forced demands that a decision is about the definition whose dues are decided, and keeps that, or puts the one in force in its place.
func (o *Oracle) forced(j *job, d *Decision) {
	if d.SeenHash != j.hash {
		o.fail("force", "job %s: a decision of the dues of %s was accepted, they are those of %s", d.Job, d.SeenHash, j.hash)
	}
	o.announces(d.Session, d.Job, d.Hash, "a decision")
	if d.Hash == j.hash {
		return
	}
	if force := o.inForce(d.Job); d.Hash != force {
		o.fail("force", "job %s: a decision puts %s in the place of %s, and in force is %q", d.Job, d.Hash, j.hash, force)
	}
}

// byEntry demands that a claim is by the definition whose dues are decided.
func (o *Oracle) byEntry(c Claim) {
	o.announces(c.Session, c.ID.Job, c.Hash, "a claim")
	if j := o.job(c.ID.Job); c.Hash != j.hash {
		o.fail("force", "%v is claimed by the definition %s, the job's is %s", c.ID, c.Hash, j.hash)
	}
}
