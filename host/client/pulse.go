package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// PulseQuery selects events of a host's feed. Fields that are empty select all that the caller
// may see.
type PulseQuery struct {
	Kinds []string
	Task  string
	// Owner is whose tasks, as user:alice; Tenant is whose, for operators.
	Owner, Tenant string
	// Host is whose feed, by one of the names of [Client.PulseHosts]; empty is the host that is asked.
	// A host that is named may be gone for good: its sequence ends with the first failure.
	Host string
	// After is the id of the event to go on behind.
	After string
	// Kept is for the events that the host has kept until now. The sequence ends behind them,
	// with a ping.
	Kept bool
	// Pings is for pings as well: by them a host without events shows that it answers.
	Pings bool
}

// PulseEvent is an event of a host's feed, without content.
type PulseEvent struct {
	// ID is the event's, INCARNATION-N.
	ID string `json:"-"`
	// Kind is task, turn, mail and so on, or PulseReset, or PulsePing.
	Kind     string    `json:"kind"`
	Time     time.Time `json:"time"`
	Tenant   string    `json:"tenant"`
	Instance string    `json:"instance"`
	Task     string    `json:"task_id"`
	Agent    string    `json:"agent"`
	Turn     int64     `json:"turn"`
	State    string    `json:"state"`
	Was      string    `json:"was"`
	Key      string    `json:"key"`
	// Model is the model whose call has failed last in a turn, ModelCause why.
	Model      string `json:"model"`
	ModelCause string `json:"model_cause"`

	Type      string `json:"type"`
	Tier      int    `json:"tier"`
	From      string `json:"from"`
	FromSwarm string `json:"from_swarm"`
	To        string `json:"to"`
	Size      int    `json:"size"`
	Peer      string `json:"peer"`

	Call   string `json:"call_id"`
	Action string `json:"action"`

	// Cause is a word for why a caller was refused.
	Cause     string `json:"cause"`
	Act       string `json:"act"`
	Outcome   string `json:"outcome"`
	Principal string `json:"principal"`
	Target    string `json:"target"`
	RequestID string `json:"request_id"`
	Count     int64  `json:"count"`

	Usage *PulseUsage `json:"usage"`

	// Host is of a reset or ping, as are Hosts, all that are alive. Reason and Missed are of a reset.
	Host   string   `json:"host"`
	Hosts  []string `json:"hosts"`
	Reason string   `json:"reason"`
	Missed uint64   `json:"missed"`
	// Raw is what the host wrote.
	Raw json.RawMessage `json:"-"`
}

// PulseUsage is what a turn, or a task that has ended, has cost.
type PulseUsage struct {
	QueuedMS float64 `json:"queued_ms"`
	WallMS   float64 `json:"wall_ms"`
	Usage
}

// UnmarshalJSON reads the times and the usage beside them.
func (u *PulseUsage) UnmarshalJSON(raw []byte) error {
	var times struct {
		Queued float64 `json:"queued_ms"`
		Wall   float64 `json:"wall_ms"`
	}
	if err := json.Unmarshal(raw, &times); err != nil {
		return err
	}
	u.QueuedMS, u.WallMS = times.Queued, times.Wall
	return u.Usage.UnmarshalJSON(raw)
}

// Kinds of events of the feed itself. Behind a reset the feed is whole; what was before it has
// to be read elsewhere. A ping ends what was kept.
const (
	PulseReset = "reset"
	PulsePing  = eventPing
)

// Pulse follows the feed of a host, which begins with a reset. A connection that breaks, or that
// the host closes, is opened again after the last event. The sequence ends with an error, which
// is then its last element, when it cannot go on, and otherwise when the reader stops, or behind
// what was kept.
func (c *Client) Pulse(ctx context.Context, q PulseQuery) iter.Seq2[PulseEvent, error] {
	return func(yield func(PulseEvent, error) bool) {
		p := &pulseStream{c: c, query: q, yield: yield, last: q.After}
		if err := p.follow(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(PulseEvent{}, c.final(err))
		}
	}
}

// PulseHosts returns the names of the hosts that share the store and are alive, which have a feed each.
// A host of an older version names itself alone.
func (c *Client) PulseHosts(ctx context.Context) (hosts []string, err error) {
	for e, err := range c.Pulse(ctx, PulseQuery{Kinds: []string{"reload"}, Kept: true}) {
		if err != nil {
			return nil, err
		}
		if hosts = e.Hosts; len(hosts) == 0 {
			hosts = []string{e.Host}
		}
	}
	return hosts, nil
}

// pulseStream is one reader's way through a feed.
type pulseStream struct {
	c     *Client
	query PulseQuery
	yield func(PulseEvent, error) bool
	last  string // the id of the last event or ping
	whole bool   // what was kept has come
	tries backoff
}

func (p *pulseStream) follow(ctx context.Context) error {
	for {
		err := p.c.readStream(ctx, p.request(), p.give)
		if errors.Is(err, errStopped) || p.query.Kept && p.whole && errors.Is(err, errClosed) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		least, ok := p.c.passing(err)
		if !ok || p.query.Host != "" {
			return err
		}
		if err := p.c.wait(ctx, &p.tries, least, err); err != nil {
			return err
		}
	}
}

func (p *pulseStream) request() call {
	v := url.Values{}
	for name, value := range map[string]string{"kind": strings.Join(p.query.Kinds, ","), "task": p.query.Task, "owner": p.query.Owner, "tenant": p.query.Tenant, "host": p.query.Host} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if p.query.Kept {
		v.Set("kept", "true")
	}
	header := http.Header{"Accept": {"text/event-stream"}}
	if p.last != "" {
		header.Set("Last-Event-ID", p.last)
	}
	return call{method: http.MethodGet, path: pulsePath + "?" + v.Encode(), header: header}
}

const pulsePath = "/skep/v1/pulse"

// give passes one event on; pings only for Kept and Pings.
func (p *pulseStream) give(f frame) error {
	p.tries.reset()
	if f.id != "" {
		p.last = f.id
	}
	if p.whole = f.name == eventPing; p.whole && !p.query.Kept && !p.query.Pings {
		return nil
	}
	e := PulseEvent{Raw: f.data}
	if err := json.Unmarshal(f.data, &e); err != nil {
		return fmt.Errorf("event %s of the feed: %w: %w", f.id, ErrNotMAIL, err)
	}
	e.Kind, e.ID = f.name, f.id
	if !p.yield(e, nil) {
		return errStopped
	}
	return nil
}
