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
	}
}
