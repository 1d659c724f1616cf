package wire

import (
	"errors"
	"io"
	"math"
)

// What a body takes before its bytes have come, in bytes.
const (
	firstRead   = 64 << 10 // at most, where its length is announced
	unknownRead = 512      // where it is not
)

// ReadBody reads a body to its end; the caller bounds it. size is the length that its header
// announces, negative for none: a body of that length is copied at most once for each doubling.
func ReadBody(body io.Reader, size int64) ([]byte, error) {
	room := int64(unknownRead)
	if size >= 0 {
		size = min(size, math.MaxInt64-1) // a header may announce all that an int64 holds
		room = min(size+1, firstRead)     // one more, to see the end
	}
	text := make([]byte, 0, room)
	for {
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return text, err
		}
		if len(text) == cap(text) {
			larger := 2 * cap(text)
			if size >= int64(cap(text)) {
				larger = int(min(size+1, int64(larger)))
			}
			text = append(make([]byte, 0, larger), text...)
		}
	}
}
