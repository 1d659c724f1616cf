package stream

import "skep/host/internal/gateway/uamp/envelope"

// Window numbers the deltas of a stream for one reader, and counts those that it has not
// acknowledged (U-061, U-063).
type Window struct {
	size int
	// next is the number of the next delta, acked how many are acknowledged.
	next, acked int
}

// NewWindow begins a window of so many deltas after those that the reader has.
func NewWindow(size, has int) *Window { return &Window{size: size, next: has, acked: has} }

// Open reports whether a delta may be sent.
func (w *Window) Open() bool { return w.next-w.acked < w.size }

// Next numbers the delta that is sent.
func (w *Window) Next() int {
	w.next++
	return w.next - 1
}

// Ack acknowledges all deltas up to a number. A number that was not sent is refused
// (U-064).
func (w *Window) Ack(seq int) error {
	if seq >= w.next || seq < -1 {
		return &envelope.Fault{
			Code: envelope.MissingSeq, Text: "the delta that is acknowledged was not sent",
			Details: map[string]any{"sent": w.next - 1},
		}
	}
	w.acked = max(w.acked, seq+1)
	return nil
}
