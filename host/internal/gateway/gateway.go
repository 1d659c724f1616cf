package gateway

import (
	"context"
	"net/http"
	"time"

	"skep/host/internal/swarm"
)

// Gateway serves one protocol.
type Gateway interface {
	// Name is the key of its table in [gateways].
	Name() string
	// Mounts are its routes on the public listener.
	Mounts() []Mount
	// Run serves its own sockets and queues until ctx ends, and drains.
	Run(ctx context.Context) error
	Carrier
	// Discover lists the agents of a partner.
	Discover(ctx context.Context, p Partner) ([]ForeignAgent, error)
	Health() Health
}

// Carrier takes outbox messages to a realm. The router calls it, for one message of a
// (task, realm, recipient) at a time.
type Carrier interface {
	// Carry is called until it returns Taken or Refused, with the same message ID. An answer
	// that the same exchange brings goes into [Runtime].Ask before Taken is returned.
	Carry(ctx context.Context, p Partner, d swarm.Delivery) Carried
}

// Carried is what became of an attempt.
type Carried struct {
	State CarriedState
	// Reason is shown to the sender and the operator.
	Reason string
	// Wait is set with Later by a realm that is up and wants the message after that time.
	Wait time.Duration
}

// CarriedState is the state of an outbox message after an attempt.
type CarriedState int

// The states after an attempt.
const (
	// Taken means that the realm has the message.
	Taken CarriedState = iota + 1
	// Refused means that the realm will not take it.
	Refused
	// Later means that nothing was sent and another attempt may succeed.
	Later
	// Unanswered means that the realm may have it.
	Unanswered
)

// Proof is what a route wants from a caller before its handler runs.
type Proof int

// The proofs.
const (
	// NoProof is for public documents.
	NoProof Proof = iota
	// Bearer wants a key, an issued token, a JSON Web Token or a client certificate. The
	// handler finds the caller with [auth.PrincipalOf].
	Bearer
	// OtherProof leaves the proof to the handler, which calls [Runtime].Identify.
	OtherProof
)

// Mount is a route on the public listener, behind its gates: addresses, hosts, rates,
// drain.
type Mount struct {
	// Method is empty for all. Pattern is a path with parts that the handler reads with
	// [http.Request.PathValue]: /a2a/:swarm, or /*rest for everything below.
	Method, Pattern string
	Proof           Proof
	// Metadata is the address below which documents name who issues tokens for a path;
	// empty for none.
	Metadata string
	// MaxBody is in bytes; 0 is the listener's bound. A negative one is for a stream of
	// messages, which the handler bounds.
	MaxBody int64
	// Streams is set for a route that may stay open: it counts among the streams, and may
	// be silent. Its request ends when the caller's token is revoked.
	Streams bool
	// OwnPlaces is set for a stream that has a place at a socket of the gateway, which bounds
	// them: it does not count among the streams.
	OwnPlaces bool
	Handler   http.Handler
}

// Health is the state of a gateway.
type Health struct {
	OK     bool
	Detail string
	// Connections, Sessions and Streams are open now.
	Connections, Sessions, Streams int
}

// Opener is a gateway with a socket of its own. Open is called before anything is served, so
// that a port in use ends the start; Close is called also where Run was not.
type Opener interface {
	Open(ctx context.Context) error
	Close() error
}
