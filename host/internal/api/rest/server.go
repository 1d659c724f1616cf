package rest

import (
	"net/http"
	"time"
)

// Limits of the server before a handler runs.
const (
	headerTimeout = 10 * time.Second
	maxHeader     = 32 << 10
	idleTimeout   = 2 * time.Minute
	// writeStallTimeout is how long a connection may read nothing of what it is
	// sent.
	writeStallTimeout = 30 * time.Second
	// maxConcurrentStreams bounds the requests in progress on one connection.
	maxConcurrentStreams = 100
	// pingAfter is how long a connection may be silent before a ping, and
	// pingTimeout how long its reply may take.
	pingAfter   = time.Minute
	pingTimeout = 15 * time.Second
)

// Server returns a server for a handler of this package. It has no write
// deadline, because streams last: the handlers set one for each write. On a loopback
// listener it takes HTTP/2 without TLS, which gRPC needs. The caller sets the listener,
// and may set ErrorLog.
func Server(h http.Handler, loopback bool) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(loopback)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes:    maxHeader,
		IdleTimeout:       idleTimeout,
		// OPTIONS * is routed as all other requests.
		DisableGeneralOptionsHandler: true,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxConcurrentStreams,
			SendPingTimeout:      pingAfter,
			PingTimeout:          pingTimeout,
			WriteByteTimeout:     writeStallTimeout,
		},
	}
}
