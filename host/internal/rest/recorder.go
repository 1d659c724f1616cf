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
	// unread says that the request has a body which nobody has read.
	unread bool
	// from is who shares a bucket with the caller.
	from string
	// route is empty for requests that have none.
	route string
	who   auth.Principal
	// told says that the audit knows already that the request was refused.
	told bool
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

// piece is how much of an answer is written under one deadline, so that a long
// answer to a slow reader who does read gets through.
const piece = 32 << 10

func (w *recorder) Write(p []byte) (n int, err error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	for {
		w.extend()
		m, err := w.ResponseWriter.Write(p[n:min(len(p), n+piece)])
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// extend gives the next write its time. A writer without deadlines, as some
// tests have, does without.
func (w *recorder) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.stall))
}

// limitReading gives the body its time.
func (w *recorder) limitReading(r *http.Request) {
	if r.Body != http.NoBody {
		w.unread = true
		w.readUntil(time.Now().Add(w.stall))
	}
}

// unlimitReading takes the limit off: from here on reading only tells whether
// the caller is still there.
func (w *recorder) unlimitReading() {
	w.unread = false
	w.readUntil(time.Time{})
}

// hurry shortens the time in which net/http drains the body of a request that
// is refused unread: it does so before it writes the answer.
func (w *recorder) hurry() {
	if w.unread {
		w.readUntil(time.Now().Add(min(time.Second, w.stall/2)))
	}
}

func (w *recorder) readUntil(t time.Time) {
	_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(t)
}
