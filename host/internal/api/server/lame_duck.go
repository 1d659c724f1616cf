package server

import (
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// quietTime is a host's [lameDuck.quiet].
	quietTime = 100 * time.Millisecond
	// lameDuckTime is how long the socket of a host that stops is open at most, as long as requests come.
	lameDuckTime = 2 * time.Second
)

// lameDuck keeps the public socket of a host that stops open until its callers have gone: net/http drops without
// an answer what comes once it is shut down. Each answer asks to connect anew, as
// https://www.rfc-editor.org/rfc/rfc9112.html#section-9.6 has it. It may be used concurrently.
type lameDuck struct {
	// quiet is how long no request has come when the socket is closed.
	quiet    time.Duration
	begun    atomic.Bool
	requests atomic.Int64
	lastAt   atomic.Int64 // of a request, Unix nanoseconds
}

// wrap serves next.
func (l *lameDuck) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.requests.Add(1)
		l.lastAt.Store(time.Now().UnixNano())
		if l.begun.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// await begins, and waits until no request has come for quiet. Without a caller it waits for none.
func (l *lameDuck) await(connections int) {
	l.begun.Store(true)
	if connections == 0 && time.Since(time.Unix(0, l.lastAt.Load())) > lameDuckTime {
		return
	}
	for end := time.Now().Add(lameDuckTime); time.Now().Before(end); {
		before := l.requests.Load()
		time.Sleep(l.quiet)
		if l.requests.Load() == before {
			return
		}
	}
}
