// Package logline owns how a record of JSON stands in a line of a log, which people read on
// terminals as it is. It must not know what records have.
package logline

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
)

// escapes reports whether a character of a record is escaped: JSON lets DEL, the control characters
// of C1 and those that turn the order of letters around stand in texts as they are, and terminals
// obey them (https://www.rfc-editor.org/rfc/rfc8259#section-7).
func escapes(r rune) bool {
	return r >= 0x7f && unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control)
}

// Escape escapes the characters of a record that could move a terminal's cursor, end a line or
// hide what follows. The record means the same.
func Escape(record []byte) []byte {
	if !bytes.ContainsFunc(record, escapes) {
		return record
	}
	var b bytes.Buffer
	for len(record) > 0 {
		before := bytes.IndexFunc(record, escapes)
		if before < 0 {
			break
		}
		b.Write(record[:before])
		r := bytes.Runes(record[before : before+min(4, len(record)-before)])[0]
		fmt.Fprintf(&b, `\u%04x`, r)
		record = record[before+len(string(r)):]
	}
	b.Write(record)
	return b.Bytes()
}

// Writer escapes the records that are written to it, each whole.
type Writer struct{ To io.Writer }

// Write implements io.Writer.
func (w Writer) Write(record []byte) (int, error) {
	if _, err := w.To.Write(Escape(record)); err != nil {
		return 0, err
	}
	return len(record), nil
}
