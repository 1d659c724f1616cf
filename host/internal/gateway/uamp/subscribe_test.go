package uamp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// subscribing is an outbox message of agent boss that an action of a verb has written.
func subscribing(id, verb, args string) swarm.Delivery {
	kind := map[string]mail.Type{"subscribe": mail.Request, "unsubscribe": mail.Broadcast}[verb]
	d := outgoing(id, kind, "x", "")
	d.Wrapper.Payload.Subject = ""
	d.Wrapper.Payload.RoutingInfo = json.RawMessage(`{"remote_swarm":"lab","gateway":{"protocol":"uamp","type":"` + verb + `"` + args + `}}`)
	return d
}

// runs lets a gateway go on with its records; end stops it.
func runs(t *testing.T, g *uamp.Gateway) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	end = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(end)
	return end
}

// until waits for something that must come.
func until(t *testing.T, what string, come func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !come(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s has not come", what)
		}
	}
}

// told waits for so many messages, and shows them in short.
func (o *out) told(t *testing.T, n int) (list []string) {
	t.Helper()
	var asked []gateway.Ask
	until(t, fmt.Sprintf("%d messages", n), func() bool {
		asked = append(asked, o.rec.take()...)
		return len(asked) >= n
	})
	for _, a := range asked {
		if a.Of == nil || a.Of.Wrapper.Payload.TaskID != "t" || a.Of.Wrapper.Payload.Sender.Name != "boss@hive" {
			t.Errorf("it does not reach who has subscribed: %+v", a)
		}
		list = append(list, strings.Join([]string{string(a.Kind), a.Subject, a.Body}, "|"))
	}
	return list
}

// subscriptions are how many records there are.
func (o *out) subscriptions(t *testing.T) int { return len(o.recordsOf(t, "lab", "subscription")) }

func withTenants(opt *uamp.Options) { opt.Tenants = []string{"default"} }

// TestSubscribe (U-086, U-093, V-U31): an agent subscribes to events. Each reaches its task by an
// envelope that cites the subscription or by one that cites nothing, until the partner ends it.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	overBindings(t, testSubscribe, withTenants)
}

func testSubscribe(t *testing.T, o *out) {
	runs(t, o.g)
	o.lab.does(func(w http.ResponseWriter, _ envelope.Signed) { w.WriteHeader(http.StatusAccepted) }, nil)
	d := subscribing("s1", "subscribe", `,"topic":"tea","filter":{"sort":"green"},"ttl":600`)
	o.carry(t, "subscribe", d, gateway.Taken)
	o.carry(t, "its repeat", d, gateway.Taken)
	got, _ := o.lab.take()
	if len(got) != 1 || got[0].Intent != envelope.Subscribe || got[0].Body.Type != "application/json" || got[0].Body.Content != `{"topic":"tea","filter":{"sort":"green"},"ttl":600}` || string(got[0].Ext["x-subject"]) != `"tea"` {
		t.Fatalf("%+v", got)
	}
	cites := about(got[0], envelope.Notify, "one")
	o.take(t, cites)
	o.take(t, cites)
	bare := about(got[0], envelope.Notify, "two")
	bare.ReplyTo = ""
	o.take(t, bare)
	named := about(got[0], envelope.Notify, "three")
	named.ReplyTo, named.Stream = "", got[0].Stream
	o.take(t, named)
	other := about(got[0], envelope.Notify, "lost")
	other.ReplyTo, other.Stream = "", "another"
	if r := o.send(t, other); r.status != http.StatusNotFound {
		t.Errorf("an event of another stream: %d %s", r.status, r.text)
	}
	if list := strings.Join(o.told(t, 3), ", "); list != "tells|one|one, tells|two|two, tells|three|three" || o.subscriptions(t) != 1 {
		t.Errorf("%s; %d records", list, o.subscriptions(t))
	}
	o.take(t, about(got[0], envelope.Confirm, "that was all"))
	if list := o.told(t, 1); list[0] != "answers||that was all" || o.subscriptions(t) != 0 {
		t.Errorf("%q; %d records", list, o.subscriptions(t))
	}
	if r := o.send(t, about(got[0], envelope.Notify, "late")); r.status != http.StatusUnprocessableEntity {
		t.Errorf("after its end: %d %s", r.status, r.text)
	}
	o.carry(t, "a repeat after the end", d, gateway.Taken)
	if got, _ := o.lab.take(); len(got) > 0 {
		t.Errorf("%d envelopes for the repeat", len(got))
	}
}

// TestSubscribeEach (U-093): an event that cites nothing is told once for each subscription. A
// record that cannot be read keeps no other back.
func TestSubscribeEach(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	broken := state.Record{Key: state.Key{Tenant: "default", Gateway: uamp.Name, Realm: "lab", Kind: "subscription", Name: "0"}, Value: []byte("{"), Expires: time.Now().Add(time.Hour)}
	if _, err := o.rt.State().Put(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"tea", "milk"} {
		o.carry(t, topic, subscribing(topic, "subscribe", `,"topic":"`+topic+`"`), gateway.Taken)
	}
	got, _ := o.lab.take()
	bare := about(got[0], envelope.Notify, "hot")
	bare.ReplyTo = ""
	o.rec.failNext(errors.New("the store is away for a moment"))
	if r := o.send(t, bare); r.status != http.StatusInternalServerError {
		t.Errorf("%d %s", r.status, r.text)
	}
	o.take(t, bare)
	o.take(t, bare)
	if list := strings.Join(o.told(t, 2), ", "); list != "tells|hot|hot, tells|hot|hot" {
		t.Error(list)
	}
}

// TestSubscribeStream (U-093, V-U31): the events of a stream are told once each, over a restart
// and while the store fails for a moment. Its last delta ends the subscription.
func TestSubscribeStream(t *testing.T) {
	t.Parallel()
	overBindings(t, testSubscribeStream, withTenants)
}

func testSubscribeStream(t *testing.T, o *out) {
	end := runs(t, o.g)
	first := []string{chunk("a"), `{"delta_seq":%d,"type":"patch","payload":{"merge":{"b":1}}}`, `{"delta_seq":%d,"type":"chunk","payload":{"chunk_b64":"Yw=="}}`}
	o.lab.does(streamAt, events(9, first...))
	o.carry(t, "subscribe", subscribing("s1", "subscribe", `,"topic":"tea"`), gateway.Taken)
	if list := strings.Join(o.told(t, 3), ", "); list != `tells|tea|a, tells|tea|{"merge":{"b":1}}, tells|tea|` {
		t.Error(list)
	}
	until(t, "the record of the last event", func() bool {
		list := o.recordsOf(t, "lab", "subscription")
		return len(list) == 1 && strings.Contains(string(list[0].Value), `"next":3`)
	})
	end()
	o.rec.failNext(errors.New("the store is away for a moment"))
	o.lab.does(nil, events(9, append(first, chunk("d"), done)...))
	again, err := uamp.New(uamp.Options{
		Runtime: o.rec, DID: hostDID, Keys: uamp.Keys{Current: private("h")}, Tenants: []string{"default"},
	})
	if err != nil {
		t.Fatal(err)
	}
	runs(t, again)
	if list := strings.Join(o.told(t, 2), ", "); list != `tells|tea|d, answers||seven` {
		t.Error(list)
	}
	until(t, "the end of the record", func() bool { return o.subscriptions(t) == 0 })
}

// TestSubscribeAboveRate (U-093): while the events of a subscription wait for the partner's rate, what our
// agents ask the partner is answered.
func TestSubscribeAboveRate(t *testing.T) {
	t.Parallel()
	overBindings(t, testSubscribeAboveRate, withTenants)
}

func testSubscribeAboveRate(t *testing.T, o *out) {
	runs(t, o.g)
	o.lab.does(streamAt, events(9, chunk("a"), chunk("b"), chunk("c")))
	waits := make(chan struct{})
	o.rec.failing = sync.OnceFunc(func() { close(waits) })
	o.rec.failNext(&gateway.RateError{Wait: time.Hour})
	o.carry(t, "subscribe", subscribing("s1", "subscribe", `,"topic":"tea"`), gateway.Taken)
	<-waits
	o.lab.does(streamAt, events(9, chunk("seven"), `{"delta_seq":%d,"type":"done"}`))
	o.carry(t, "an ask meanwhile", outgoing("ask", mail.Request, "x", "how many?"), gateway.Taken)
	o.answered(t, "seven")
}

// TestSubscribeTime (U-093, V-U31): at the end of its time a subscription is withdrawn and its
// request answered; the time goes on while the host is down.
func TestSubscribeTime(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	o.carry(t, "subscribe", subscribing("s1", "subscribe", `,"topic":"tea","ttl":1`), gateway.Taken)
	got, _ := o.lab.take()
	runs(t, o.g)
	if list := o.told(t, 1); list[0] != `answers|Subscription over|The time of the subscription to "tea" is over.` {
		t.Error(list)
	}
	until(t, "the end of the record", func() bool { return o.subscriptions(t) == 0 })
	var ended []envelope.Signed
	until(t, "the cancel", func() bool {
		ended, _ = o.lab.take()
		return len(ended) > 0
	})
	if len(ended) != 1 || ended[0].Intent != envelope.Cancel || ended[0].ReplyTo != got[0].ID {
		t.Errorf("%+v", ended)
	}
}

// TestUnsubscribe (U-085, V-U31): an interrupt and the verb withdraw subscriptions: the verb
// those of its topic, or all. Each request has its answer.
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	overBindings(t, testUnsubscribe, withTenants)
}

func testUnsubscribe(t *testing.T, o *out) {
	for _, topic := range []string{"tea", "milk", "jam", "salt"} {
		o.carry(t, topic, subscribing(topic, "subscribe", `,"topic":"`+topic+`"`), gateway.Taken)
	}
	o.lab.take()
	other := subscribing("of another task", "unsubscribe", `,"topic":"tea"`)
	other.Wrapper.Payload.TaskID = "other"
	o.carry(t, "of another task", other, gateway.Taken)
	for what, c := range map[string]struct {
		d    swarm.Delivery
		left int
	}{
		"1 unsubscribe": {subscribing("u1", "unsubscribe", `,"topic":"tea"`), 3},
		"2 its repeat":  {subscribing("u1", "unsubscribe", `,"topic":"tea"`), 3},
	} {
		o.carry(t, what, c.d, gateway.Taken)
	}
	if list := o.told(t, 1); list[0] != "answers|[CANCELLED]|The subscription was cancelled." || o.subscriptions(t) != 3 {
		t.Errorf("%q, %d left", list, o.subscriptions(t))
	}
	cancel := outgoing("c1", mail.Interrupt, "x", "")
	cancel.Wrapper.Payload.Subject = "Cancel it"
	o.carry(t, "an interrupt", cancel, gateway.Taken)
	if o.told(t, 1); o.subscriptions(t) != 2 {
		t.Errorf("%d left", o.subscriptions(t))
	}
	all := subscribing("u2", "unsubscribe", "")
	o.carry(t, "without a topic", all, gateway.Taken)
	if o.told(t, 2); o.subscriptions(t) != 0 {
		t.Errorf("%d left", o.subscriptions(t))
	}
	sent, _ := o.lab.take()
	seen := map[envelope.ID]bool{}
	for _, e := range sent {
		if e.Intent != envelope.Cancel || seen[e.ReplyTo] {
			t.Errorf("%+v", e.Envelope)
		}
		seen[e.ReplyTo] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d are withdrawn", len(seen))
	}
}

// TestSubscribeRefused (U-093, V-U31): what the partner refuses has its answer at once, and what
// cannot bring events does not leave.
func TestSubscribeRefused(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	o.lab.does(o.lab.answers(404, envelope.Error, "application/json", `{"code":"4.04","message":"what tea?"}`), nil)
	o.carry(t, "an error", subscribing("s1", "subscribe", `,"topic":"tea"`), gateway.Taken)
	if list := o.told(t, 1); list[0] != "answers|[4.04]|what tea?" || o.subscriptions(t) != 0 {
		t.Errorf("%q, %d records", list, o.subscriptions(t))
	}
	o.lab.does(func(w http.ResponseWriter, _ envelope.Signed) { w.WriteHeader(http.StatusForbidden) }, nil)
	o.carry(t, "a status", subscribing("s2", "subscribe", `,"topic":"tea"`), gateway.Refused)
	if o.subscriptions(t) != 0 {
		t.Error("a refused one is kept")
	}
	o.lab.take()
	o.p.May = gateway.Rights{gateway.MayAsk}
	got := o.carry(t, "a partner that may not tell", subscribing("s3", "subscribe", `,"topic":"tea"`), gateway.Refused)
	if sent, _ := o.lab.take(); len(sent) > 0 || !strings.Contains(got.Reason, `add "tell" to may in [gateways.uamp.partners.lab]`) {
		t.Errorf("%q, %d envelopes", got.Reason, len(sent))
	}
}

// TestSubscribeInDoubt (U-093): where the host stops or its store fails after the partner has
// taken the envelope, it is repeated with its id, and events that come before are told.
func TestSubscribeInDoubt(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	var sent envelope.Signed
	o.lab.does(func(w http.ResponseWriter, s envelope.Signed) {
		sent = s
		w.WriteHeader(http.StatusAccepted)
		o.rec.store.failNext("Put", errors.New("the store is away for a moment"))
	}, nil)
	d := subscribing("s1", "subscribe", `,"topic":"tea"`)
	o.carry(t, "the record fails", d, gateway.Unanswered)
	bare := about(sent, envelope.Notify, "hot")
	bare.ReplyTo = ""
	o.take(t, bare)
	o.lab.does(nil, nil)
	o.carry(t, "the repeat", d, gateway.Taken)
	if got, _ := o.lab.take(); len(got) != 2 || got[0].ID != got[1].ID || !got[0].Time.Equal(got[1].Time) {
		t.Errorf("%d envelopes", len(got))
	}
	if list := o.told(t, 1); list[0] != "tells|hot|hot" || o.subscriptions(t) != 1 {
		t.Errorf("%q, %d records", list, o.subscriptions(t))
	}
}

// TestSubscribeErased (U-093): a subscription whose records were erased brings nothing more, and
// makes no record again.
func TestSubscribeErased(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	end := runs(t, o.g)
	read := make(chan struct{}, 9)
	o.lab.does(streamAt, func(w http.ResponseWriter, r *http.Request) {
		for _, kind := range []string{"subscription", "conversation"} {
			for _, record := range o.recordsOf(t, "lab", kind) {
				if err := o.rt.State().Delete(t.Context(), record.Key, 0); err != nil {
					t.Error(err)
				}
			}
		}
		events(9, chunk("a"), chunk("b"))(w, r)
		read <- struct{}{}
	})
	o.carry(t, "subscribe", subscribing("s1", "subscribe", `,"topic":"tea"`), gateway.Taken)
	<-read
	until(t, "the event that was under way", func() bool { return len(o.rec.take()) == 1 })
	end()
	if left := o.rec.take(); len(left) > 0 || o.subscriptions(t)+len(o.recordsOf(t, "lab", "conversation")) > 0 {
		t.Errorf("%+v, %d records", left, o.subscriptions(t))
	}
}

// TestSubscribeBounds (U-093): an agent has 64 subscriptions at a partner, and all agents 256.
func TestSubscribeBounds(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	subscribe := func(agent string, n int, want gateway.CarriedState) gateway.Carried {
		d := subscribing(fmt.Sprint(agent, n), "subscribe", `,"topic":"tea"`)
		d.Conversation = fmt.Sprint(agent, n)
		d.Wrapper.Payload.Sender.Name = agent + "@hive"
		return o.carry(t, fmt.Sprint(agent, n), d, want)
	}
	for _, agent := range []string{"a", "b", "c", "d"} {
		for n := range 64 {
			subscribe(agent, n, gateway.Taken)
		}
	}
	for agent, reason := range map[string]string{"a": "the agent has 64 subscriptions at lab", "e": "there are 256 subscriptions at lab"} {
		if got := subscribe(agent, 64, gateway.Refused); !strings.Contains(got.Reason, reason) {
			t.Errorf("%s: %q", agent, got.Reason)
		}
	}
	if sent, _ := o.lab.take(); len(sent) != 256 {
		t.Errorf("%d envelopes", len(sent))
	}
}

// TestSubscribeTaskEnds (U-093, V-U31): a task that has ended gets no event. Its subscription is
// withdrawn, at the next event at the latest, and again while the partner is away.
func TestSubscribeTaskEnds(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	var more atomic.Bool
	var away atomic.Int32
	o.lab.does(func(w http.ResponseWriter, s envelope.Signed) {
		if s.Intent == envelope.Cancel && away.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		streamAt(w, s)
	}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") == "" || more.Load() {
			events(1, chunk("a"), chunk("b"))(w, r)
		}
	})
	runs(t, o.g)
	for _, topic := range []string{"tea", "milk"} {
		o.carry(t, topic, subscribing(topic, "subscribe", `,"topic":"`+topic+`"`), gateway.Taken)
		o.told(t, 1)
	}
	got, _ := o.lab.take()
	o.rt.CloseRequest("request-tea")
	if r := o.send(t, about(got[0], envelope.Notify, "late")); r.status != http.StatusUnprocessableEntity {
		t.Errorf("by an envelope that cites it: %d %s", r.status, r.text)
	}
	o.rt.CloseRequest("request-milk")
	more.Store(true)
	until(t, "the end of both", func() bool { return o.subscriptions(t) == 0 })
	bare := about(got[0], envelope.Notify, "later")
	bare.ReplyTo = ""
	if r := o.send(t, bare); r.status != http.StatusNotFound {
		t.Errorf("by an envelope that cites nothing: %d %s", r.status, r.text)
	}
	cancelled := map[envelope.ID]bool{}
	until(t, "a cancel of each", func() bool {
		sent, _ := o.lab.take()
		for _, e := range sent {
			cancelled[e.ReplyTo] = cancelled[e.ReplyTo] || e.Intent == envelope.Cancel
		}
		return cancelled[got[0].ID] && cancelled[got[1].ID] && away.Load() >= 4
	})
	if asked := o.rec.take(); len(asked) > 0 {
		t.Errorf("%+v", asked)
	}
}
