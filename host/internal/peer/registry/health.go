package registry

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
)

// discoveredTTL is how long a discovered swarm may be down, and how long it is
// kept without use. One that never answered is removed at once.
const discoveredTTL = 24 * time.Hour

// healthCounts count health checks.
type healthCounts struct{ checked, failed atomic.Int64 }

// healthResult is the result of one health check.
type healthResult struct {
	began, ended time.Time
	// err is why the swarm is not active. description is nil when it was not
	// queried.
	err         error
	description *description
}

// Ping checks a swarm's health and description now, for at most 20 s, and returns
// its entry. A swarm that is down is no error: see Active and LastError. Errors
// are *swarm.Refusal for an unknown name, and the cause of ctx.
func (r *Registry) Ping(ctx context.Context, name string) (Entry, error) {
	e, ok := r.Entry(name)
	if !ok {
		return e, notRegistered(name)
	}
	r.touch(name)
	f := r.checkHealth(ctx, e, true)
	if ctx.Err() != nil {
		return e, context.Cause(ctx)
	}
	if e, ok = r.applyHealth(e, f); !ok {
		return e, notRegistered(name)
	}
	r.report(ctx, name, f)
	return e, nil
}

func notRegistered(name string) error {
	return refuse(swarm.ErrNotFound, "swarm '%s' is not registered", truncate(name))
}

// Counts returns the number of health checks since the host started, and of
// failed ones.
func (r *Registry) Counts() (asked, failed int64) {
	return r.counts.checked.Load(), r.counts.failed.Load()
}

// checkHealth checks a swarm's health, and queries its description if it is
// healthy and describe is set.
func (r *Registry) checkHealth(ctx context.Context, e Entry, describe bool) healthResult {
	f := healthResult{began: r.opt.Now()}
	_, f.err = r.get(ctx, e.BaseURL, "/health")
	f.ended = r.opt.Now()
	if f.err != nil || !describe {
		return f
	}
	s, err := r.describe(ctx, e.Name, e.BaseURL)
	if err != nil {
		r.opt.Logger.Debug("a swarm is well but does not say what it is", "swarm", e.Name, "err", err)
		return f
	}
	f.description = &s
	return f
}

// applyHealth stores a result and returns the updated entry, or false if the
// swarm is no longer known at that address.
func (r *Registry) applyHealth(asked Entry, f healthResult) (is Entry, known bool) {
	r.counts.checked.Add(1)
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
	is.applyResult(f)
	if !is.Fixed && !is.Volatile {
		r.unsaved = max(r.unsaved, changeLevel(was, is))
	}
	if was.Active != is.Active || was.Since.IsZero() {
		r.opt.Logger.Info("a swarm was asked whether it is well", "swarm", is.Name, "active", is.Active, "why", is.LastError)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := indexOf(r.entries, is.Name) // it is there: only holders of saving take entries away
	r.entries[i] = is
	if is.Discovered && !is.Active && f.ended.Sub(is.LastSeen) > discoveredTTL || is.expired(f.ended) {
		r.entries = slices.Delete(slices.Clone(r.entries), i, i+1)
	}
	return is, true
}

func (e *Entry) applyResult(f healthResult) {
	if f.err != nil {
		e.markInactive(f.err, f.ended)
		return
	}
	e.markActive(f.began, f.ended)
	if f.description != nil {
		e.setDescription(*f.description)
	}
}

// markActive records a successful check.
func (e *Entry) markActive(begun, now time.Time) {
	latency := now.Sub(begun).Seconds()
	e.Latency, e.LastSeen, e.LastError = &latency, now.UTC(), ""
	if !e.Active {
		e.Active, e.Since = true, now.UTC()
	}
}

// markInactive records a failed check.
func (e *Entry) markInactive(why error, now time.Time) {
	e.LastError = errorText(why)
	if e.Active || e.Since.IsZero() {
		e.Active, e.Since = false, now.UTC()
	}
}

// setDescription stores a swarm's description. Public is the operator's choice
// for an entry of the file, and false for a discovered one.
func (e *Entry) setDescription(s description) {
	e.Version, e.Description, e.Entrypoint = s.Version, s.Swarm.Description, s.Swarm.Entrypoint
	e.Keywords = append([]string{}, s.Swarm.Keywords...)
	if !e.Fixed {
		e.Public = s.Swarm.Public && !e.Discovered
	}
}

// copyState copies what was learnt about the swarm before.
func (e *Entry) copyState(was Entry) {
	e.Version, e.Description, e.Entrypoint, e.Keywords = was.Version, was.Description, was.Entrypoint, was.Keywords
	e.Active, e.Since, e.LastError, e.Latency, e.LastSeen = was.Active, was.Since, was.LastError, was.Latency, was.LastSeen
}

// errorText words an error for callers that list swarms.
func errorText(err error) string {
	var broken *abi.Error
	switch {
	case errors.As(err, &broken) && broken.Reason == egress.ReasonAddress:
		return "it is at an address that is not public; the operator can allow a private one in [peers] with allow_private = true"
	case errors.As(err, &broken):
		return broken.Message
	}
	return err.Error()
}
