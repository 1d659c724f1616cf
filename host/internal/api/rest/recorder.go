package rest

import (
	"net/http"
	"time"

	"skep/host/internal/api/auth"
)

// recorder is the writer of one answer. It keeps what the log and the counters
// need, and sets a deadline for every write: the server has none, because a
// stream may last for days.
type recorder struct {
	http.ResponseWriter
	stall time.Duration
	id    string
	start time.Time

	status int
	// bodyUnread is set while the request has an unread body.
	bodyUnread bool
	// address is the client address that rate limits count for.
	address string
	// route is empty for requests without one.
	route string
	// who is the authenticated caller. The audit log and the request log need it after
	// the call has ended, when they have the recorder alone.
	who auth.Principal
	// audited is set when the refusal is already recorded.
	audited bool
	// addHeaders, if set, completes the headers before they are written.
	addHeaders func(http.Header)
	compressor compressor
	// staysOpen is set for a stream that may be silent for longer than stall: a deadline
	// holds for one write only. Without it the next write comes before the deadline, which
	// would end a stream of HTTP/2 even between writes.
	staysOpen bool
	// lastEvent is the id of the newest event of the log that was sent.
	lastEvent int64
	request   *http.Request
}

// Unwrap gives [http.ResponseController] the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader writes the status line and the headers.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		if w.addHeaders != nil {
			w.addHeaders(w.Header())
		}
		w.compressor.begin(w, w.request, status, w.writeChunks)
	}
	w.extendWriteDeadline()
	w.ResponseWriter.WriteHeader(status)
}

// writeChunk is how much is written under one deadline: a long answer to a slow
// reader gets through.
const writeChunk = 32 << 10

func (w *recorder) Write(p []byte) (n int, err error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.compressor.zip != nil {
		return w.compressor.zip.Write(p)
	}
	return w.writeChunks(p)
}

func (w *recorder) writeChunks(p []byte) (n int, err error) {
	for {
		w.extendWriteDeadline()
		m, err := w.ResponseWriter.Write(p[n:min(len(p), n+writeChunk)])
		w.clearWriteDeadline()
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// FlushError sends what was written, for [http.ResponseController].
func (w *recorder) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.compressor.zip != nil {
		if err := w.compressor.zip.Flush(); err != nil {
			return err
		}
	}
	w.extendWriteDeadline()
	defer w.clearWriteDeadline()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements [http.Flusher], which gRPC asks for.
func (w *recorder) Flush() { _ = w.FlushError() }

// extendWriteDeadline sets the deadline of the next write. Writers of some tests
// have no deadlines; the error is ignored.
func (w *recorder) extendWriteDeadline() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.stall))
}

// clearWriteDeadline ends the deadline of a write to a stream.
func (w *recorder) clearWriteDeadline() {
	if w.staysOpen {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Time{})
	}
}

// limitBodyTime sets the deadline of the first read of the body.
func (w *recorder) limitBodyTime(r *http.Request) {
	if r.Body != http.NoBody {
		w.bodyUnread = true
		w.setReadDeadline(time.Now().Add(w.stall))
	}
}

// clearReadDeadline removes the deadline after the body: from here on net/http
// reads only to notice that the caller left.
func (w *recorder) clearReadDeadline() {
	w.bodyUnread = false
	w.setReadDeadline(time.Time{})
}

// shortenDrain shortens the time in which net/http drains the unread body of a
// refused request: it drains before it writes the answer.
func (w *recorder) shortenDrain() {
	if w.bodyUnread {
		w.setReadDeadline(time.Now().Add(min(time.Second, w.stall/2)))
	}
}

func (w *recorder) setReadDeadline(t time.Time) {
	_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(t)
}
