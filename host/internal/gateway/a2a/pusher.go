package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
)

// Times of pushes.
const (
	pushTimeout  = 30 * time.Second // of one attempt
	minPushPause = time.Second
	maxPushPause = 5 * time.Minute
)

// pusher follows the tasks that have push addresses, each in a goroutine of its own.
type pusher struct {
	g     *Gateway
	slots pushSlots
	// followers run the pushes. Their values check the credentials of the callers.
	followers *state.Followers[recheck]
}

// recheck checks the credential of a caller again.
type recheck func(context.Context) bool

func newPusher(g *Gateway) *pusher {
	return &pusher{g: g, slots: newPushSlots(), followers: state.NewFollowers[recheck]()}
}

// Run implements [gateway.Gateway]: it goes on with the pushes that the store has, and
// serves new ones until ctx ends.
func (g *Gateway) Run(ctx context.Context) error {
	if !g.pushes() {
		<-ctx.Done()
		return nil
	}
	var slots sync.WaitGroup
	slots.Go(func() { g.pusher.slots.run(ctx) })
	g.pusher.followers.Open(ctx)
	for pause := minPushPause; ctx.Err() == nil; pause = min(2*pause, maxPushPause) {
		err := g.pusher.resume(ctx)
		if err == nil {
			break
		}
		g.Log.Warn("a2a: pushes of an earlier run wait", "pause", pause, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	<-ctx.Done()
	g.pusher.followers.Wait()
	slots.Wait()
	return nil
}

// resume starts what an earlier run has left.
func (p *pusher) resume(ctx context.Context) error {
	if p.g.Tenants == nil {
		return nil
	}
	tenants, err := p.g.Tenants(ctx)
	if err != nil {
		return fmt.Errorf("pushes of A2A: the tenants: %w", err)
	}
	for _, tenant := range tenants {
		if err := p.resumeTenant(ctx, tenant); err != nil {
			return fmt.Errorf("pushes of A2A: tenant %s: %w", tenant, err)
		}
	}
	return nil
}

func (p *pusher) resumeTenant(ctx context.Context, tenant string) error {
	of := state.Key{Tenant: tenant, Gateway: Name, Kind: kindPush}
	return state.Each(ctx, p.g.Runtime.State(), of, func(r state.Record) error {
		if stored, err := decodePush(r); err == nil && !stored.Ended {
			p.followers.Start(r.Key, p.serve)
		}
		return nil
	})
}

// start follows the task of a record. check is nil for a caller whose credential is checked by
// [gateway.Runtime].Renew alone.
func (p *pusher) start(key state.Key, check recheck) {
	if check == nil {
		p.followers.Start(key, p.serve)
		return
	}
	p.followers.StartWith(key, check, p.serve)
}

// serve pushes each state of a task to one address, until the task is over. A push that
// fails is tried again after a pause.
func (p *pusher) serve(ctx context.Context, key state.Key) {
	var last pushedState
	for pause := minPushPause; ; pause = min(2*pause, maxPushPause) {
		pushed, err := p.follow(ctx, key, &last)
		if err == nil || ctx.Err() != nil {
			return
		}
		if pushed {
			pause = minPushPause
		}
		p.g.Log.Warn("a2a: a push failed", "task", key.Name, "realm", key.Realm, "pause", pause, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// pushedState is what was sent to an address, also while the store cannot write that.
// Another version of its record may be another address.
type pushedState struct {
	version int64
	mark    string
}

// follow reads the task's stream and pushes its states. It returns nil when none is left;
// pushed reports whether one was sent.
func (p *pusher) follow(ctx context.Context, key state.Key, last *pushedState) (pushed bool, err error) {
	stored, x, err := p.load(ctx, key)
	if err != nil || stored == nil {
		return false, err
	}
	stream, err := p.g.Runtime.Follow(ctx, x, 0)
	if err != nil {
		return false, err
	}
	defer stream.Close()
	for {
		piece, err := stream.Next(ctx)
		if err != nil {
			return pushed, err
		}
		if piece.Answer == nil {
			continue
		}
		sent, ended, err := p.pushState(ctx, key, x, last)
		pushed = pushed || sent
		if err != nil || ended {
			return pushed, err
		}
	}
}

// load reads a record and its exchange. A record is removed when its time is over, its
// exchange is gone, or its caller may not read the task any more.
func (p *pusher) load(ctx context.Context, key state.Key) (*storedPush, gateway.Exchange, error) {
	record, err := p.g.Runtime.State().Get(ctx, key)
	if errors.Is(err, state.ErrNotFound) {
		return nil, gateway.Exchange{}, nil
	}
	if err != nil {
		return nil, gateway.Exchange{}, err
	}
	stored, err := decodePush(record)
	if err != nil || stored.Ended {
		return nil, gateway.Exchange{}, err
	}
	x, err := p.find(ctx, key, stored.push)
	if errors.Is(err, gateway.ErrUnknown) || errors.Is(err, gateway.ErrDenied) || time.Now().After(stored.Until) {
		if errors.Is(err, gateway.ErrDenied) {
			p.g.Runtime.Record(gateway.Event{Caller: stored.caller(), Foreign: stored.Message, Type: "push", Out: true, Verdict: "refused", Reason: err.Error()})
		}
		return nil, x, p.g.Runtime.State().Delete(ctx, key, record.Version)
	}
	return &stored, x, err
}

// isProven reports whether the credential still holds that gave an address, as far as it
// is checked here: [gateway.Runtime].Renew does it for the others.
func (p *pusher) isProven(ctx context.Context, key state.Key, to push) bool {
	if !to.Unlisted {
		return true
	}
	check, _ := p.followers.Value(key)
	return check != nil && check(ctx)
}

// find returns the exchange of an address, as its caller would find it now.
func (p *pusher) find(ctx context.Context, key state.Key, to push) (gateway.Exchange, error) {
	if !p.isProven(ctx, key, to) {
		return gateway.Exchange{}, fmt.Errorf("its credential is not valid any more, or was checked by an earlier run of the host: %w", gateway.ErrDenied)
	}
	caller, err := p.g.Runtime.Renew(to.caller())
	if err != nil {
		return gateway.Exchange{}, err
	}
	x, err := p.g.Runtime.Find(ctx, caller, to.Message)
	if err == nil && p.g.agent(caller, x.Task.Swarm, x.Agent) == nil {
		err = gateway.ErrUnknown
	}
	return x, err
}

// pushState sends the task's state unless it was sent before, and then stores that it was:
// a crash between the two sends it again. It takes a slot first, so that what waits for one
// keeps no task in memory.
func (p *pusher) pushState(ctx context.Context, key state.Key, x gateway.Exchange, last *pushedState) (sent, ended bool, err error) {
	release, err := p.slots.acquire(ctx, key)
	if err != nil {
		return false, false, err
	}
	defer release()
	stored, _, err := p.load(ctx, key)
	if err != nil || stored == nil {
		return false, true, err
	}
	now, ok, err := p.g.Runtime.Look(ctx, x)
	if err != nil || !ok || stateMark(now) == stored.Pushed {
		return false, false, err
	}
	task, err := p.g.snapshot(ctx, x)
	pushed := pushedState{stored.version, stateMark(now)}
	if sent = pushed != *last; err == nil && sent {
		err = p.send(ctx, stored.push, task)
	}
	if err != nil {
		return false, false, err
	}
	*last = pushed
	stored.Pushed, stored.Ended = pushed.mark, task.Status.State.Terminal()
	return sent, stored.Ended, p.g.storePush(ctx, key, stored.push, stored.version)
}

// stateMark names a state of a task, and what it asks.
func stateMark(a gateway.Answer) string {
	mark := string(a.Outcome)
	for _, q := range a.Questions {
		mark += " " + q.ID
	}
	return mark
}

// send makes one attempt.
func (p *pusher) send(ctx context.Context, to push, task *a2a.Task) error {
	body, err := pushBody(to.Version, task)
	if err != nil {
		return err
	}
	err = p.post(ctx, to.Config, body)
	event := gateway.Event{Caller: to.caller(), Foreign: to.Message, Type: "push", Out: true, Text: body}
	p.g.Runtime.Record(event.WithOutcome(false, err))
	return err
}

// pushBody returns the whole task, in the form of the version in which the address came.
func pushBody(version a2a.ProtocolVersion, task *a2a.Task) ([]byte, error) {
	if version == a2av0.Version {
		return json.Marshal(a2av0.FromV1Task(task))
	}
	return json.Marshal(a2a.StreamResponse{Event: task})
}

func (p *pusher) post(ctx context.Context, config a2a.PushConfig, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, config.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", jsonType)
	if config.Token != "" {
		req.Header.Set("A2A-Notification-Token", config.Token)
		req.Header.Set("X-A2A-Notification-Token", config.Token) // the name in version 0.3
	}
	if a := config.Auth; a != nil && a.Credentials != "" && !strings.ContainsAny(a.Scheme+a.Credentials, "\r\n") {
		req.Header.Set("Authorization", a.Scheme+" "+a.Credentials)
	}
	resp, err := p.g.PushClient.Do(req)
	if err != nil {
		return errors.New("the push address cannot be reached")
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the push address answers %d", resp.StatusCode)
	}
	return nil
}
