package iacp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
)

// deadlines call off questions that a hub has handed on, when their time is over and no connection waits
// for their answers: a host was killed, or the connection has ended. Their records are made before the
// questions are accepted. They are safe for concurrent use.
type deadlines struct {
	g *Gateway

	mu sync.Mutex
	// open are the questions that no connection waits for.
	open map[state.Key]deadline
	// added has an element after each addition that run has not seen.
	added chan struct{}
}

// deadline is the record of a question: its id, and when its asker waits no more.
type deadline struct {
	ID string    `json:"id"`
	By time.Time `json:"by"`
}

const deadlineKind = "deadline"

func newDeadlines(g *Gateway) *deadlines {
	return &deadlines{g: g, open: map[state.Key]deadline{}, added: make(chan struct{}, 1)}
}

func deadlineKey(c gateway.Caller, id string) state.Key {
	sum := sha256.Sum256([]byte(id))
	return state.Key{Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: deadlineKind, Name: hex.EncodeToString(sum[:])}
}

// save records the deadline of a question.
func (d *deadlines) save(ctx context.Context, c gateway.Caller, id string, by time.Time) error {
	_, err := state.Save(ctx, d.g.Runtime.State(), deadlineKey(c, id), 0, deadline{id, by}, time.Until(by)+unsentLife)
	switch {
	case errors.Is(err, state.ErrVersion): // a repeat
		return nil
	case errors.Is(err, state.ErrFull):
		return fmt.Errorf("there is no room for the time of the message: %w", gateway.ErrBusy)
	}
	return err
}

// remove forgets a question that has its answer, or is not accepted.
func (d *deadlines) remove(ctx context.Context, key state.Key) {
	d.mu.Lock()
	delete(d.open, key)
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if err := d.g.Runtime.State().Delete(ctx, key, 0); err != nil { // it is removed after the next start
		d.g.Log.Warn("iacp: the deadline of a question stays recorded", "realm", key.Realm, "error", err)
	}
}

// removeRefused forgets a question that was not accepted, unless it was before: a repeat with other
// content is refused, too.
func (d *deadlines) removeRefused(ctx context.Context, c gateway.Caller, id string) {
	if _, err := d.g.Runtime.Find(context.WithoutCancel(ctx), c, id); errors.Is(err, gateway.ErrUnknown) {
		d.remove(ctx, deadlineKey(c, id))
	}
}

// handOver takes a question from its connection: one that has an answer is forgotten.
func (d *deadlines) handOver(ctx context.Context, key state.Key, due deadline, answered bool) {
	if answered {
		d.remove(ctx, key)
		return
	}
	d.add(key, due)
}

// add lets a question be called off in time: no connection waits for its answer.
func (d *deadlines) add(key state.Key, due deadline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[key] = due
	select {
	case d.added <- struct{}{}:
	default:
	}
}

// load adds the questions of an earlier host.
func (d *deadlines) load(ctx context.Context) error {
	for _, p := range d.g.Partners() {
		of := deadlineKey(p.Caller(), "")
		of.Name = ""
		err := state.Each(ctx, d.g.Runtime.State(), of, func(r state.Record) error {
			var due deadline
			if json.Unmarshal(r.Value, &due) == nil {
				d.add(r.Key, due)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// run calls questions off until ctx ends. What a failing store has held up is tried again.
func (d *deadlines) run(ctx context.Context) {
	for err := d.load(ctx); err != nil; err = d.load(ctx) {
		d.g.Log.Warn("iacp: deadlines wait for the store", "error", err)
		if !gateway.Pause(ctx, d.g.FirstPause) {
			return
		}
	}
	for ctx.Err() == nil {
		key, due, wait := d.next(time.Now())
		if wait == 0 {
			d.callOff(ctx, key, due)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-d.added:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// next returns the question that is due first, and how long it has.
func (d *deadlines) next(now time.Time) (key state.Key, due deadline, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k, one := range d.open {
		if due.ID == "" || one.By.Before(due.By) {
			key, due = k, one
		}
	}
	if due.ID == "" {
		return key, due, time.Hour
	}
	return key, due, max(0, due.By.Sub(now))
}

// callOff withdraws a question without an answer: the withdrawal puts one into the outbox.
func (d *deadlines) callOff(ctx context.Context, key state.Key, due deadline) {
	err := d.cancel(ctx, key, due)
	if err == nil || errors.Is(err, gateway.ErrUnknown) || errors.Is(err, gateway.ErrConflict) {
		d.remove(ctx, key)
		return
	}
	d.g.Log.Warn("iacp: a question whose time is over is not called off yet", "realm", key.Realm, "message", due.ID, "error", err)
	d.add(key, deadline{due.ID, time.Now().Add(d.g.FirstPause)})
}

func (d *deadlines) cancel(ctx context.Context, key state.Key, due deadline) error {
	p, isPartner := d.g.Runtime.Partner(key.Realm)
	if !isPartner {
		return gateway.ErrUnknown
	}
	x, err := d.g.Runtime.Find(ctx, p.Caller(), due.ID)
	if err != nil {
		return err
	}
	if a, ready, err := d.g.Runtime.Look(ctx, x); err != nil || ready && a.Outcome != gateway.NeedsInput {
		return err
	}
	return d.g.Runtime.Cancel(ctx, p.Caller(), due.ID, errLate.Error())
}

// isDue reports whether a question may have to be called off without its connection.
func (n note) isDue() bool { return n.HandedOn && !n.Until.IsZero() }
