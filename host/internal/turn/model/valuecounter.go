package model

// valueCounter counts the delimiters that begin or separate values of a JSON document
// while it is read. For invalid JSON the count may be wrong; the libraries refuse such a
// document before they allocate for it.
type valueCounter struct {
	count, most int // of this document, and of the largest
	// inString and escaped are the position within a string, blankLine whether the line is
	// empty so far.
	inString, escaped, blankLine bool
}

// add counts the bytes of p. In a stream each event is a document, and an empty line ends
// it.
func (m *valueCounter) add(p []byte, stream bool) {
	for _, c := range p {
		switch {
		case c == '\n': // JSON strings contain no line break
			if m.blankLine && stream {
				m.count = 0
			}
			m.inString, m.escaped, m.blankLine = false, false, true
			continue
		case c == '\r':
			continue
		case m.escaped:
			m.escaped = false
		case c == '"':
			m.inString = !m.inString
		case m.inString:
			m.escaped = c == '\\'
		case c == '{' || c == '[' || c == ',':
			m.count++
			m.most = max(m.most, m.count)
		}
		m.blankLine = false
	}
}
