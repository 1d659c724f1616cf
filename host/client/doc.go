// Package client is a Go client of a host's public HTTP API. It owns the wire
// shapes of requests and answers, repeats, and the resumption of event streams.
// It must not know how a host is configured, stored or run: it sees what any
// other caller of the API sees.
//
// Calls are safe to repeat. A post carries an idempotency key, so a client whose
// connection broke sends it again and is attached to what it had started; a
// stream continues after the last event it has seen. Both go on for
// [Options.Patience] without an answer, then give up with [Unreachable].
//
// A [Client] starts no goroutines that outlive a call.
package client
