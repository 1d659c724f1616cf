package rest

import (
	"net/http"
	"time"

	"skep/host/internal/auth"
)

// recorder is the writer of one answer. It remembers what the log and the
// counters need, and gives every write its own deadline: the server has none,
// because a stream may last for days.
type recorder struct {
	http.ResponseWriter
	stall time.Duration
	id    string
	begun time.Time

	status int
	// route is empty for requests that have none.
	route string
	who   auth.Principal
}

// Unwrap lets [http.ResponseController] find the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader begins the answer.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.extend()
	return w.ResponseWriter.Write(p)
}

// extend gives the next write its time. A writer without deadlines, as some
// tests have, does without.
func (w *recorder) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.stall))
}

// limitReading gives the body its time. It also holds while net/http drains
// the body of a request that was refused unread.
func (w *recorder) limitReading(r *http.Request) {
	if r.Body != http.NoBody {
		_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Now().Add(w.stall))
	}
}

// unlimitReading takes the limit off: from here on reading only tells whether
// the caller is still there.
func (w *recorder) unlimitReading() {
	_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Time{})
}
