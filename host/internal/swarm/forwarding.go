package swarm

import (
	"context"
	"errors"
	"sync"
)

// ErrCallerLeft ends a request of another host whose caller has left.
var ErrCallerLeft = errors.New("the caller has left")

// Forwarding is of a request that another host can answer. Who handles the request notes what the
// runtime has refused, and who has received it sends it to the other host. It is safe for
// concurrent use.
type Forwarding struct {
	// Key is the id of a message that comes without one: the same on each attempt, at each host.
	Key string
	// Charged is set where another host, or an earlier attempt, has charged the limits of the caller.
	Charged bool
	// Hop is set for a request that another host has sent: its end does not mean that the caller has
	// left, unless its context has the cause [ErrCallerLeft].
	Hop bool

	mu       sync.Mutex
	moved    *Elsewhere
	draining bool
}

// forwardingKey is the key of a [Forwarding] in a context.
type forwardingKey struct{}

// WithForwarding returns the context of a request that another host can answer.
func WithForwarding(ctx context.Context, f *Forwarding) context.Context {
	return context.WithValue(ctx, forwardingKey{}, f)
}

// ForwardingOf returns the forwarding of a request, nil for one that no other host can answer.
func ForwardingOf(ctx context.Context) *Forwarding {
	f, _ := ctx.Value(forwardingKey{}).(*Forwarding)
	return f
}

// Note notes that the runtime has refused a call of the request because of its task's host. Other
// errors are ignored.
func (f *Forwarding) Note(err error) {
	moved, elsewhere := errors.AsType[*Elsewhere](err)
	if f == nil || !elsewhere && !errors.Is(err, ErrDraining) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if elsewhere {
		f.moved = moved
	} else {
		f.draining = true
	}
}

// Noted returns [*Elsewhere] or [ErrDraining] if that was noted.
func (f *Forwarding) Noted() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.moved != nil:
		return f.moved
	case f.draining:
		return ErrDraining
	}
	return nil
}
