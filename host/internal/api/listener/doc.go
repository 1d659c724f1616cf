// Package listener owns the host's sockets: how many connections are open, in all
// and per network, and TLS with certificates that can be replaced at run time. It
// must not know what is requested: it has no routes, and sees of requests only
// whether a connection has one in progress. It starts no goroutine that outlives
// [Certificates.Run] or [Listener.Serve].
package listener
