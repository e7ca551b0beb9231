package faultproxy

import "bytes"

// PostgresCommitted matches the reply of a PostgreSQL server to a commit that succeeded, however the client had asked for
// it: the message CommandComplete with the tag COMMIT.
func PostgresCommitted(reply []byte) bool {
	return bytes.Contains(reply, []byte("C\x00\x00\x00\x0bCOMMIT\x00"))
}

// MySQLCommit matches a client's request to commit, sent as text (COM_QUERY) to MySQL or MariaDB. The server's reply says
// no more than OK.
func MySQLCommit(request []byte) bool {
	const header = 4 // length and number of the packet
	return len(request) > header && bytes.EqualFold(request[header:], []byte("\x03COMMIT"))
}
