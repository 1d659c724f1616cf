package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"skep/host/internal/gateway/state"
	"skep/host/internal/swarm"
)

// Errors of a [Runtime], which come wrapped in a text that a caller may see.
var (
	// ErrUnknown is returned for an agent, conversation or exchange that the caller
	// cannot see: unknown, unexposed and foreign are the same.
	ErrUnknown = errors.New("unknown")
	// ErrConflict is returned for another message under a used ID.
	ErrConflict = errors.New("conflict")
	// ErrDenied is returned for what the caller may not do.
	ErrDenied = errors.New("denied")
	// ErrInvalid is returned for a malformed message.
	ErrInvalid = errors.New("invalid")
	// ErrBusy is returned when a limit is reached; a later attempt may succeed.
	ErrBusy = errors.New("busy")
	// ErrStreamLost ends a stream whose turn did not repeat itself after a crash.
	ErrStreamLost = errors.New("stream_lost")
	// ErrDraining is returned while the host stops.
	ErrDraining = errors.New("draining")
	// ErrElsewhere is returned for a conversation that another host works on; a later attempt
	// may reach that host.
	ErrElsewhere = errors.New("elsewhere")
)

// RateError is an ErrBusy of a caller that sends more than rate_limit allows.
type RateError struct {
	// Wait is the time until the next message may come.
	Wait time.Duration
}

// Error implements error.
func (e *RateError) Error() string { return "too many requests" }

// Unwrap returns [ErrBusy].
func (e *RateError) Unwrap() error { return ErrBusy }

// Runtime is what a gateway may use of the host. It is made for one gateway. All methods
// are safe for concurrent use.
type Runtime interface {
	// Ask takes a message, durably: when it returns, the message survives any crash. A
	// repeat of the ID returns the first exchange.
	Ask(ctx context.Context, c Caller, a Ask) (Exchange, error)
	// CheckRelay returns nil if one member of a realm may send a message to another, and
	// counts the message in the rate of the caller. The gateway then delivers it.
	CheckRelay(c Caller, m Relayed) error
	// CheckRate counts a message that the gateway answers itself in the rate of the caller.
	// It returns ErrBusy for one too many.
	CheckRate(c Caller) error
	// Find returns an exchange of the caller by the ID of its message.
	Find(ctx context.Context, c Caller, id string) (Exchange, error)
	// Asked returns the exchange of the caller's message that an outbox message answers,
	// or in whose course an agent asks the caller.
	Asked(ctx context.Context, c Caller, response swarm.Delivery) (Exchange, error)
	// List returns exchanges of the caller, newest first, accepted before the given one
	// ("" for the start): at most limit.
	List(ctx context.Context, c Caller, before string, limit int) ([]Exchange, error)
	// Look returns what an exchange has now, without waiting: ok is false while it works.
	Look(ctx context.Context, x Exchange) (a Answer, ok bool, err error)
	// Wait returns the answer of an exchange, or what it needs from the caller. It ends
	// with ctx's cause.
	Wait(ctx context.Context, x Exchange) (Answer, error)
	// Follow reads the stream of an exchange from a chunk on, 0 for the start. A reader
	// that calls Next later gets the same: the agent never waits for it.
	Follow(ctx context.Context, x Exchange, from int64) (Stream, error)
	// FollowWhole reads the stream of an exchange from its start, with progress in its place
	// among the chunks: the pieces of both kinds are the same, in the same order, on every read.
	FollowWhole(ctx context.Context, x Exchange) (Stream, error)
	// FollowEach reads the exchanges of one message to several agents as one stream, in the
	// order of the task's log, which is the same on every read: chunks are shown when their
	// turn is over.
	FollowEach(ctx context.Context, of []Exchange) (Stream, error)
	// Cancel withdraws an exchange. Its task is cancelled when no other caller waits for it.
	Cancel(ctx context.Context, c Caller, id, reason string) error
	// Show shows a piece of a foreign answer to the readers of the task that sent the
	// outbox message. It is no mail and not stored.
	Show(ctx context.Context, of swarm.Delivery, piece Piece) error
	// Waits reports whether the request of an outbox message is open: its task goes on, and it
	// has no answer.
	Waits(ctx context.Context, of swarm.Delivery) (bool, error)
	// Blob returns a blob that an answer names, if an agent of its task has put it or a
	// message of the task brought it.
	Blob(ctx context.Context, x Exchange, ref PartRef) ([]byte, error)
	// ExposedAgents lists the exposed agents that the caller may see, by swarm and name.
	ExposedAgents(c Caller) []ExposedAgent
	// Identify finds out who sends a request to a mount. It returns ErrBusy for a caller at
	// one of the listener's limits, and ErrDenied for one without a valid credential.
	Identify(r *http.Request) (Caller, error)
	// Renew returns a stored caller as he is now: with the rights and agents that the
	// configuration in force gives him. It returns ErrDenied for one whose credential was
	// revoked or has expired, and for a realm that is no partner any more.
	Renew(c Caller) (Caller, error)
	// Partner returns a configured realm.
	Partner(name string) (Partner, bool)
	// State keeps small durable records of the gateway.
	State() state.Store
	// Record writes an event to the audit log and the message log.
	Record(e Event)
}

// Stream reads the pieces of an exchange. It is used by one goroutine and must be closed.
type Stream interface {
	// Next waits for the next piece. After the End of each exchange it returns io.EOF, and
	// [ErrStreamLost] when a chunk that was read is not what the log has.
	Next(ctx context.Context) (Piece, error)
	Close() error
}

// Event is what an operator may want to know of a foreign message.
type Event struct {
	Caller  Caller
	Foreign string // the foreign message id
	Type    string // its foreign type
	Out     bool   // sent, not received
	Text    []byte // the message as it came or went; only its size and hash are recorded
	// Verdict is accepted, duplicate, refused, delivered, failed or [SentOn]; Reason is why.
	Verdict string
	Reason  string
	// Cause is a word for why a message was refused, Key the key of swarm.toml that holds the limit.
	Cause, Key string
	Task       string
}

// SentOn is the verdict of a message that came for another host.
const SentOn = "sent on"

// WithOutcome returns the event with the verdict and the reason of what was tried: an
// error refuses a message that came, and fails one that was sent.
func (e Event) WithOutcome(duplicate bool, err error) Event {
	switch {
	case err != nil && e.Out:
		e.Verdict, e.Reason = "failed", err.Error()
	case errors.Is(err, ErrElsewhere):
		e.Verdict = SentOn
	case err != nil:
		e.Verdict, e.Reason = "refused", err.Error()
		e.Cause, e.Key = refusalCause(err)
	case e.Out:
		e.Verdict = "delivered"
	case duplicate:
		e.Verdict = "duplicate"
	default:
		e.Verdict = "accepted"
	}
	return e
}
