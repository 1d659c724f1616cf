package amp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
)

// noticeKind is the kind of the records of events that are to be sent to registered agents.
const noticeKind = "notice"

// Bounds of notices.
const (
	maxNotices       = 64               // that wait for one agent
	maxNotice        = 128 << 10        // bytes of one
	noticeTimeout    = 10 * time.Second // for one attempt
	firstNoticePause = 100 * time.Millisecond
	lastNoticePause  = 10 * time.Second
	noticeMargin     = time.Hour // that a record outlives its time, in which that is logged
)

// notice is an event for an agent that has registered (M-038). It is kept until the agent has taken
// it, or the partner's give_up is over.
type notice struct {
	Agent     string `json:"agent"`
	Token     string `json:"token"`
	At, Until time.Time
	Message   message.Message `json:"message"`
}

// noticesKey is the key of the goroutine that sends an agent its notices, and begins their names.
func noticesKey(c gateway.Caller, agent string) state.Key {
	sum := sha256.Sum256([]byte(agent))
	return state.Key{Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: noticeKind, Name: hex.EncodeToString(sum[:16])}
}

// otherAgents are the registered agents of a realm besides one.
func (g *Gateway) otherAgents(ctx context.Context, c gateway.Caller, source string) (list []string, err error) {
	all, err := g.registered.list(ctx, c)
	for _, r := range all {
		if r.Agent.ID != source {
			list = append(list, r.Agent.ID)
		}
	}
	return list, err
}

// notify sends an event to registered agents of a realm, durably. A repeat that comes before one was
// taken changes nothing; a later one is sent again, under the same id.
func (g *Gateway) notify(ctx context.Context, p gateway.Partner, token string, m message.Message, agents []string) error {
	if len(agents) == 0 {
		return nil
	}
	if size := len(wire.MustEncode(m)); size > maxNotice {
		return message.Faultf(message.InvalidSchema, message.ReasonTooLarge, "the event has %d bytes, and goes to registered agents: such a one has at most %d", size, maxNotice)
	}
	m.Headers.Signature, m.Headers.Authentication = nil, nil
	for _, agent := range agents {
		m.Destination = message.Destination{Agent: agent}
		now := time.Now()
		if err := g.putNotice(ctx, p, notice{Agent: agent, Token: token, At: now, Until: now.Add(p.GiveUp), Message: m}); err != nil {
			return err
		}
	}
	return nil
}

// putNotice keeps a notice, and lets it be sent. One too many for its agent is dropped with a line in
// the log: an agent that takes none holds up no other.
func (g *Gateway) putNotice(ctx context.Context, p gateway.Partner, n notice) error {
	c := p.Caller()
	key := noticesKey(c, n.Agent)
	waiting, err := g.noticesOf(ctx, key)
	if err != nil {
		return err
	}
	if len(waiting) >= maxNotices {
		g.dropped(c, n, fmt.Errorf("%d events wait for it", len(waiting)))
		return nil
	}
	name := key
	name.Name += ownID(noticeKind, c, n.Message.ID+"\x1f"+n.Message.Source.Agent)
	_, err = state.Save(ctx, g.Runtime.State(), name, 0, n, p.GiveUp+noticeMargin)
	switch {
	case errors.Is(err, state.ErrVersion):
		err = nil // it waits already
	case errors.Is(err, state.ErrFull):
		err = message.Faultf(message.InsufficientResources, message.ReasonFull, "the storage of the tenant is full: raise [tenants.%s] storage", c.Principal.Tenant)
	}
	if err == nil {
		g.notices.Start(key, g.sendNotices)
	}
	return err
}

// dropped records that an agent does not get an event.
func (g *Gateway) dropped(c gateway.Caller, n notice, why error) {
	g.Log.Warn("amp: a registered agent does not get an event", "partner", c.Realm, "agent", n.Agent, "message", n.Message.ID, "reason", why)
	g.Runtime.Record(gateway.Event{Caller: c, Foreign: n.Message.ID, Type: string(message.Event), Out: true}.WithOutcome(false, why))
}

// noticesOf are the records of the notices that wait for an agent.
func (g *Gateway) noticesOf(ctx context.Context, of state.Key) (list []state.Record, err error) {
	err = state.Each(ctx, g.Runtime.State(), of, func(r state.Record) error {
		if strings.HasPrefix(r.Key.Name, of.Name) {
			list = append(list, r)
		}
		return nil
	})
	return list, err
}

// openNotices lets the notices be sent that wait since before the host started.
func (g *Gateway) openNotices(ctx context.Context) {
	g.notices.Open(ctx)
	for _, p := range g.Partners() {
		of := noticesKey(p.Caller(), "")
		of.Name = ""
		err := state.Each(ctx, g.Runtime.State(), of, func(r state.Record) error {
			var n notice
			if err := json.Unmarshal(r.Value, &n); err != nil {
				return err
			}
			g.notices.Start(noticesKey(p.Caller(), n.Agent), g.sendNotices)
			return nil
		})
		if err != nil && ctx.Err() == nil {
			g.Log.Error("amp: the events for registered agents of a partner are not sent", "partner", p.Name, "error", err)
		}
	}
}

// sendNotices sends an agent its notices, the oldest first, until none waits.
func (g *Gateway) sendNotices(ctx context.Context, of state.Key) {
	for pause := firstNoticePause; ; {
		sent, left, err := g.sendOldest(ctx, of)
		switch {
		case ctx.Err() != nil || err == nil && !left:
			return
		case sent:
			pause = firstNoticePause
			continue
		case err != nil:
			g.Log.Error("amp: the events for a registered agent are not sent", "partner", of.Realm, "error", err)
		}
		if !gateway.Pause(ctx, pause) {
			return
		}
		pause = min(2*pause, lastNoticePause)
	}
}

// sendOldest makes one attempt to send the oldest notice of an agent. left means that there was one,
// sent that it waits no longer.
func (g *Gateway) sendOldest(ctx context.Context, of state.Key) (sent, left bool, err error) {
	waiting, err := g.noticesOf(ctx, of)
	if err != nil || len(waiting) == 0 {
		return false, false, err
	}
	var first notice
	var key state.Key
	for _, r := range waiting {
		var n notice
		if err := json.Unmarshal(r.Value, &n); err != nil {
			return false, true, err
		}
		if key.Name == "" || n.At.Before(first.At) {
			first, key = n, r.Key
		}
	}
	p, known := g.Runtime.Partner(of.Realm)
	if known && p.Tenant == of.Tenant {
		err = g.sendNotice(ctx, p, first)
	} else {
		err = gateway.Refuse("%s is no partner any more", of.Realm)
	}
	carried := gateway.CarriedAfter(err)
	isOver := err != nil && !time.Now().Before(first.Until)
	switch {
	case ctx.Err() != nil:
		return false, true, nil
	case carried.State == gateway.Refused || isOver:
		g.dropped(p.Caller(), first, err)
	case carried.State != gateway.Taken:
		return false, true, nil
	}
	return true, true, g.Runtime.State().Delete(ctx, key, 0)
}

// sendNotice sends a notice as any message to its agent.
func (g *Gateway) sendNotice(ctx context.Context, p gateway.Partner, n notice) error {
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	a := &attempt{g: g, p: p, d: swarm.Delivery{}, caller: p.Caller(), to: n.Agent, m: n.Message}
	if err := a.findWayTo(ctx, n.Agent); err != nil {
		return err
	}
	if len(p.HMACKey) > 0 {
		a.m.Timestamp = timestamp(time.Now()) // its receiver refuses a signature that is old
	}
	var err error
	if a.text, err = g.write(a.caller, n.Token, a.m); err != nil {
		return gateway.Refuse("the event cannot be written: %v", err)
	}
	if err := a.tell(ctx); err != nil {
		return err
	}
	g.Runtime.Record(gateway.Event{Caller: a.caller, Foreign: a.m.ID, Type: string(message.Event), Out: true, Text: a.text}.WithOutcome(false, nil))
	return nil
}
