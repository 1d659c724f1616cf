package cluster

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Options are the host that joins, and the times of its signs of life.
type Options struct {
	// DSN leads to the server, as its only session: a pooler ends none when told to.
	DSN string
	// HID is the host's number, which its groups of writes have, too.
	HID int64
	// Swarm is the name of the host's swarm. All hosts are of one.
	Swarm string
	// Address is where the other hosts reach this one.
	Address string
	// Version is the version of skep, Features the highest feature level that it has, default [Features].
	Version  string
	Features int
	// Life names this start of the host, unlike any other; Prior one of the same host that is dead for
	// certain, empty for none. Its slots are free at once.
	Life, Prior string
	// Beat is the time between two signs of life, TTL that without one until the others take
	// the host's slots. Defaults 1 s and 6 s.
	Beat, TTL time.Duration
	// Now is the clock, default time.Now. Only its differences count.
	Now    func() time.Time
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	if o.Beat == 0 {
		o.Beat = time.Second
	}
	if o.TTL == 0 {
		o.TTL = 6 * o.Beat
	}
	if o.Features == 0 {
		o.Features = Features
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Moves is what takes work up and lays it down.
type Moves interface {
	// Gained is called when slots have become the host's. It returns once their work is done
	// here. An error ends the membership.
	Gained(ctx context.Context, slots []Slot) error
	// Losing is called before slots are given away. It returns once nothing of them is done or
	// written here any more.
	Losing(ctx context.Context, slots []Slot) error
	// Undone returns which of some pieces of work are still to be done, wherever. It changes nothing.
	Undone(ctx context.Context, work []ID) ([]ID, error)
	// Ended is called when the membership ends for an error, before what is under way is waited for: a write of it
	// may hang. It ends all work and returns at once.
	Ended(err error)
}

// ErrFenced means that the other hosts have taken this one for dead. What it does from then on
// does not count.
var ErrFenced = errors.New("the other hosts have taken this one for dead")

// Place is where a slot's work is done.
type Place struct {
	HID     int64
	Address string
}
