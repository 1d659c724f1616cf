package registry

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"skep/abi"
	"skep/host/internal/egress"
	"skep/host/internal/swarm"
)

// forgetAfter is how long a discovered swarm may be silent, and how long it is known
// when nobody asks for it. One that never answered is forgotten at once.
const forgetAfter = 24 * time.Hour

// counts are of the questions to swarms whether they are well.
type counts struct{ asked, failed atomic.Int64 }

// finding is what a swarm came to when it was asked.
type finding struct {
	begun, ended time.Time
	// err is why it is not active, said what it is, nil where that is not known.
	err  error
	said *said
}

// Ping asks a swarm now whether it is well and what it is, for at most 20 s, and
// returns what is known of it then. That it does not answer is no error: see
// Active and Trouble. Errors are *swarm.Refusal for a name that is not known, and
// the cause of ctx.
func (r *Registry) Ping(ctx context.Context, name string) (Entry, error) {
	e, ok := r.Entry(name)
	if !ok {
		return e, unknown(name)
	}
	r.use(name)
	f := r.ask(ctx, e, true)
	if ctx.Err() != nil {
		return e, context.Cause(ctx)
	}
	if e, ok = r.note(e, f); !ok {
		return e, unknown(name)
	}
	return e, nil
}

func unknown(name string) error {
	return refuse(swarm.ErrNotFound, "swarm '%s' is not registered", shown(name))
}

// Counts returns how many swarms were asked whether they are well since the host
// was started, and how many times none answered.
func (r *Registry) Counts() (asked, failed int64) {
	return r.counts.asked.Load(), r.counts.failed.Load()
}

// ask asks a swarm whether it is well, and if so and wanted, what it is.
func (r *Registry) ask(ctx context.Context, e Entry, describe bool) finding {
	f := finding{begun: r.opt.Now()}
	_, f.err = r.get(ctx, e.BaseURL, "/health")
	f.ended = r.opt.Now()
	if f.err != nil || !describe {
		return f
	}
	s, err := r.look(ctx, e.Name, e.BaseURL)
	if err != nil {
		r.opt.Logger.Debug("a swarm is well but does not say what it is", "swarm", e.Name, "err", err)
		return f
	}
	f.said = &s
	return f
}

// note takes a finding over, and returns the entry as it is then, or false if it
// is not known any more at that address.
func (r *Registry) note(asked Entry, f finding) (is Entry, known bool) {
	r.counts.asked.Add(1)
	if f.err != nil {
		r.counts.failed.Add(1)
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	was, known := r.Entry(asked.Name)
	if !known || was.BaseURL != asked.BaseURL {
		return Entry{}, false
	}
	is = was
	is.take(f)
	if !is.Fixed && !is.Volatile {
		r.unsaved = max(r.unsaved, change(was, is))
	}
	if was.Active != is.Active || was.Since.IsZero() {
		r.opt.Logger.Info("a swarm was asked whether it is well", "swarm", is.Name, "active", is.Active, "why", is.Trouble)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := indexOf(r.entries, is.Name) // it is there: only holders of saving take entries away
	r.entries[i] = is
	if is.Found && !is.Active && f.ended.Sub(is.LastSeen) > forgetAfter || is.unused(f.ended) {
		r.entries = slices.Delete(slices.Clone(r.entries), i, i+1)
	}
	return is, true
}

func (e *Entry) take(f finding) {
	if f.err != nil {
		e.silent(f.err, f.ended)
		return
	}
	e.heard(f.begun, f.ended)
	if f.said != nil {
		e.described(*f.said)
	}
}

// heard takes over that a swarm has answered.
func (e *Entry) heard(begun, now time.Time) {
	latency := now.Sub(begun).Seconds()
	e.Latency, e.LastSeen, e.Trouble = &latency, now.UTC(), ""
	if !e.Active {
		e.Active, e.Since = true, now.UTC()
	}
}

// silent takes over that a swarm did not answer, or not as one that is well.
func (e *Entry) silent(why error, now time.Time) {
	e.Trouble = trouble(why)
	if e.Active || e.Since.IsZero() {
		e.Active, e.Since = false, now.UTC()
	}
}

// described takes over what a swarm says of itself. Whether others are told of it
// is the operator's word for one of the file, and nobody's for a discovered one.
func (e *Entry) described(s said) {
	e.Version, e.Description, e.Entrypoint = s.Version, s.Swarm.Description, s.Swarm.Entrypoint
	e.Keywords = append([]string{}, s.Swarm.Keywords...)
	if !e.Fixed {
		e.Public = s.Swarm.Public && !e.Found
	}
}

// recall takes over what was learnt of the swarm before.
func (e *Entry) recall(was Entry) {
	e.Version, e.Description, e.Entrypoint, e.Keywords = was.Version, was.Description, was.Entrypoint, was.Keywords
	e.Active, e.Since, e.Trouble, e.Latency, e.LastSeen = was.Active, was.Since, was.Trouble, was.Latency, was.LastSeen
}

// trouble words an error for those who list swarms.
func trouble(err error) string {
	var broken *abi.Error
	switch {
	case errors.As(err, &broken) && broken.Reason == egress.ReasonAddress:
		return "it is at an address that is not public; the operator can allow a private one in [peers] with allow_private = true"
	case errors.As(err, &broken):
		return broken.Message
	}
	return err.Error()
}
