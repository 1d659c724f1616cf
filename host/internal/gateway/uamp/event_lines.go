package uamp

import "bytes"

// eventLines splits server-sent events into lines, which end with CR, LF or both; a byte order mark
// may stand before the first
// (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream).
type eventLines struct {
	begun bool
	// afterCR means that a line has ended with CR: the LF that may follow belongs to it. It is not
	// waited for, as an event may be whole.
	afterCR bool
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

// split implements [bufio.SplitFunc].
func (l *eventLines) split(data []byte, atEOF bool) (advance int, line []byte, err error) {
	skip := 0
	switch {
	case !l.begun && !atEOF && len(data) < len(byteOrderMark) && bytes.HasPrefix(byteOrderMark, data):
		return 0, nil, nil
	case !l.begun:
		if l.begun = true; bytes.HasPrefix(data, byteOrderMark) {
			skip = len(byteOrderMark)
		}
	case l.afterCR && len(data) > 0:
		if l.afterCR = false; data[0] == '\n' {
			skip = 1
		}
	}
	i := bytes.IndexAny(data[skip:], "\r\n")
	switch {
	case i >= 0:
		l.afterCR = data[skip+i] == '\r'
		return skip + i + 1, data[skip : skip+i], nil
	case atEOF && len(data) > skip:
		return len(data), data[skip:], nil
	}
	return skip, nil, nil
}
