package oracle

// Led tells that a store has answered a session that it leads, in a term. Where the store alone elects, terms rise.
func (o *Oracle) Led(session, term int64, byStore bool) {
	o.demandLive(session, "a term")
	if by, led := o.terms[term]; led && by != session {
		o.fail("term", "session %d leads in term %d, in which session %d did", session, term, by)
	}
	if o.terms[term] != session && byStore && term <= o.term {
		o.fail("term", "session %d leads in term %d, after %d", session, term, o.term)
	}
	o.terms[term], o.term = session, max(o.term, term)
}

// inTerm judges the term of a claim.
func (o *Oracle) inTerm(id ID, session, term int64) {
	if by := o.terms[term]; term != 0 && by != session {
		o.fail("term", "%v is claimed by session %d in term %d, in which session %d leads", id, session, term, by)
	}
}
