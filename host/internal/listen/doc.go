// Package listen owns the host's sockets: how many connections there may be, in
// all and from one address, and TLS with certificates that can be replaced while
// it runs. It must not know what is asked over them: it has no routes, and knows
// of requests only whether a connection has one under way. It starts no goroutine
// that outlives [Certificates.Run] or [Listener.Serve].
package listen
