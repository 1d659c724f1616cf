// Package client is a Go client of a host's public HTTP API. It owns the wire
// shapes of requests and answers, repeats, and the resumption of event streams.
// It must not know how a host is configured, stored or run: it sees what any
// other caller of the API sees.
//
// What is safe to do twice is repeated: reads, and what changes nothing the
// second time. A post carries an idempotency key, so a client whose connection
// broke sends it again and is attached to what it had started; a stream continues
// after the last event it has seen. Any other call is repeated only when the host
// has not begun it. Repeats go on for [Options.Patience] without an answer, with
// pauses that grow, or as long as the host asks for; then they give up with
// [Unreachable], or with the host's last refusal.
//
// A [Client] starts no goroutines that outlive a call.
package client
