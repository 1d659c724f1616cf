package rest

import (
	"net/http"
	"time"
)

// Bounds of what a caller may make the server hold before a handler sees it.
const (
	slowHeader = 10 * time.Second
	maxHeader  = 32 << 10
	idle       = 2 * time.Minute
	// unmoved is how long a connection may take nothing of what it is sent.
	unmoved = 30 * time.Second
	// sharing is how many requests may be under way on one connection.
	sharing = 100
	// silence is how long a connection may say nothing before it is asked
	// whether it is still there, answerBy how long it has to say so.
	silence  = time.Minute
	answerBy = 15 * time.Second
)

// Server returns a server for a handler of this package. It has no write
// deadline, because streams last: the handlers give each write its own. The
// caller sets what it listens on, and may set ErrorLog.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: slowHeader,
		MaxHeaderBytes:    maxHeader,
		IdleTimeout:       idle,
		// OPTIONS * is asked of a server, and goes the way of all others here.
		DisableGeneralOptionsHandler: true,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: sharing,
			SendPingTimeout:      silence,
			PingTimeout:          answerBy,
			WriteByteTimeout:     unmoved,
		},
	}
}
