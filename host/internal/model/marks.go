package model

// marks counts what begins or parts the values of a JSON document as it comes. Of
// JSON that is none the count may be wrong: the libraries refuse it before they
// make anything of it.
type marks struct {
	n, most int // of this document, and of the largest
	// quoted and escaped say where in a text it stands, blank that the line has
	// nothing so far.
	quoted, escaped, blank bool
}

// see counts on. Of a stream each event is a document, and a line without anything
// is its end.
func (m *marks) see(p []byte, stream bool) {
	for _, c := range p {
		switch {
		case c == '\n': // no text of JSON has one
			if m.blank && stream {
				m.n = 0
			}
			m.quoted, m.escaped, m.blank = false, false, true
			continue
		case c == '\r':
			continue
		case m.escaped:
			m.escaped = false
		case c == '"':
			m.quoted = !m.quoted
		case m.quoted:
			m.escaped = c == '\\'
		case c == '{' || c == '[' || c == ',':
			m.n++
			m.most = max(m.most, m.n)
		}
		m.blank = false
	}
}
