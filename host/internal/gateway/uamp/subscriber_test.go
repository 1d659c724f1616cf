package uamp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
)

// newSubscribe is an envelope of the realm that subscribes.
func newSubscribe(to, body string) envelope.Envelope {
	e := newAsk(to, "")
	e.Intent, e.Body = envelope.Subscribe, envelope.NewBody("application/json", []byte(body))
	return e
}

// ended reports whether a stream has ended, and its last delta.
func (h *hive) ended(t *testing.T, at string) (envelope.Delta, bool) {
	t.Helper()
	r := h.call(t, http.MethodGet, at, "lab-token", "")
	i := strings.LastIndex(r.text, "data: ")
	if i < 0 {
		return envelope.Delta{}, false
	}
	line, _, _ := strings.Cut(r.text[i+len("data: "):], "\n")
	d := delta(t, line)
	return d, d.Type.Ends()
}

// TestSubscriber (U-093, V-U31): an agent of a realm subscribes for a time. At its end the
// subscription is withdrawn, also where the host was stopped or its store has failed meanwhile.
func TestSubscriber(t *testing.T) {
	t.Parallel()
	var o uamp.Options
	h := newHive(t, func(opt *uamp.Options) {
		opt.Tenants = []string{"default"}
		o = *opt
	})
	seen := h.exposeAsks("calc")
	h.take(t, newSubscribe("calc", `{"topic":"tea","filter":"green"}`))
	if a := <-seen; a.Subject != "SUBSCRIBE: tea" || a.Body != `{"topic":"tea","filter":"green"}` {
		t.Errorf("%+v", a)
	}
	for _, body := range []string{`{"topic":"tea","ttl":0.5}`, `{"topic":"tea","ttl":-1}`, `{"topic":"tea","ttl":604801}`, `{"topic":7}`, `{`,
		`{"topic":"tea","topic":"milk"}`, `{"topic":"tea","ttl":5,"ttl":600}`, `{"topic":"tea","filter":{"a":1,"\u0061":2}}`,
		`{"topic":"tea"} {}`, `{"topic":"tea","filter":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
	} {
		h.refused(t, body, h.send(t, newSubscribe("calc", body)), envelope.Malformed)
	}
	h.take(t, newSubscribe("calc", `{"topic":"tea","TTL":0}`)) // another member
	short := newSubscribe("slow", `{"topic":"tea","ttl":1}`)
	location := h.take(t, short).location
	if n := len(h.recordsOf(t, "lab", "subscriber")); n != 1 {
		t.Errorf("%d records", n)
	}
	h.take(t, newSubscribe("calc", `{"topic":"tea","ttl":600}`)) // its agent ends it at once
	h.rt.FailNext("Cancel", errors.New("the store is away for a moment"))
	again, err := uamp.New(o) // after a restart
	if err != nil {
		t.Fatal(err)
	}
	runs(t, again)
	if d, ok := h.ended(t, location); !ok || d.Type != envelope.DeltaCancel {
		t.Errorf("%+v", d)
	}
	until(t, "the end of the record", func() bool { return len(h.recordsOf(t, "lab", "subscriber")) == 0 })
	h.take(t, short)
	if r := h.take(t, short); r.location != location {
		t.Errorf("a repeat has the stream %s", r.location)
	}
}

// TestSubscriberCancels (U-085, U-092, V-U31): who has subscribed ends the subscription before
// its time, and no other.
func TestSubscriberCancels(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	runs(t, h.g)
	e := newSubscribe("slow", `{"topic":"tea","ttl":600}`)
	location := h.take(t, e).location
	cancel := newAsk("slow", "enough")
	cancel.Intent, cancel.ReplyTo, cancel.From = envelope.Cancel, e.ID, "did:web:lab.example:agents:y"
	if r := h.post(t, "lab-token", signedBy(t, h.own.WithID(cancel.From+"#k"), cancel)); r.status != http.StatusForbidden {
		t.Errorf("of another agent: %d %s", r.status, r.text)
	}
	cancel.ID, cancel.From = envelope.NewID(), labDID
	h.take(t, cancel)
	if d, ok := h.ended(t, location); !ok || d.Type != envelope.DeltaCancel {
		t.Errorf("%+v", d)
	}
}

// TestSubscriberReserved (U-093): a subscription whose end cannot be kept reaches no agent, and one
// that is not delivered leaves no record.
func TestSubscriberReserved(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	seen := o.exposeAsks("calc")
	e := newSubscribe("calc", `{"topic":"tea","ttl":600}`)
	away := errors.New("the store is away for a moment")
	o.rec.store.failNext("Put", away)
	o.refused(t, "no record", o.send(t, e), envelope.Internal)
	o.rec.failNext(away)
	o.refused(t, "no delivery", o.send(t, e), envelope.Internal)
	before := o.rec.store.written()
	o.refused(t, "no agent", o.send(t, newSubscribe("none", `{"topic":"tea","ttl":600}`)), envelope.UnknownRecipient)
	if n := o.rec.store.written() - before; n != 0 {
		t.Errorf("%d writes for no agent", n)
	}
	if n := len(o.recordsOf(t, "lab", "subscriber")); len(seen) > 0 || n > 0 {
		t.Errorf("%d reach the agent, %d records", len(seen), n)
	}
	o.take(t, e)
	<-seen
}

// TestSubscriberBounds (U-093): a realm has as many subscriptions with a ttl as the settings allow. A
// repeat takes no place, and one that ends leaves its place.
func TestSubscriberBounds(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(opt *uamp.Options) { opt.Subscriptions = 2 })
	runs(t, h.g)
	first := newSubscribe("slow", `{"topic":"tea","ttl":600}`)
	h.take(t, first)
	h.take(t, newSubscribe("slow", `{"topic":"tea","ttl":600}`))
	more := newSubscribe("slow", `{"topic":"tea","ttl":600}`)
	r := h.send(t, more)
	h.refused(t, "one more", r, envelope.Busy)
	if !strings.Contains(r.text, "which is subscriptions of [gateways.uamp]") {
		t.Error(r.text)
	}
	for _, ttl := range []string{"0", "-1", "604801", "1.5", `"600"`} {
		h.refused(t, "a ttl of "+ttl, h.send(t, newSubscribe("slow", `{"topic":"tea","ttl":`+ttl+`}`)), envelope.Malformed)
	}
	h.take(t, newSubscribe("slow", `{"topic":"tea"}`))
	h.take(t, first)
	cancel := newAsk("slow", "enough")
	cancel.Intent, cancel.ReplyTo = envelope.Cancel, first.ID
	h.take(t, cancel)
	until(t, "the end of the record", func() bool { return len(h.recordsOf(t, "lab", "subscriber")) == 1 })
	h.take(t, more)
	h.take(t, first) // it has ended, and all places are taken
	if n := len(h.recordsOf(t, "lab", "subscriber")); n != 2 {
		t.Errorf("%d records", n)
	}
}

// TestSubscriberFollowed (U-093): a subscription that was accepted is withdrawn at the end of its
// time also where the store has failed after its delivery, and a repeat of one that has ended
// leaves no record.
func TestSubscriberFollowed(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	runs(t, o.g)
	e := newSubscribe("slow", `{"topic":"tea","ttl":1}`)
	o.rec.store.failNext("Get", errors.New("the store is away for a moment"))
	o.refused(t, "no record is read", o.send(t, e), envelope.Internal)
	ends := func(when string) {
		t.Helper()
		until(t, "the end of the record "+when, func() bool { return len(o.recordsOf(t, "lab", "subscriber")) == 0 })
	}
	ends("of the subscription")
	o.take(t, e)
	ends("of its repeat")
}

// TestSubscriberLeaves (U-093): a subscription whose sender leaves as it is taken, and whose record
// was lost meanwhile, is withdrawn at the end of its time all the same.
func TestSubscriberLeaves(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	runs(t, o.g)
	e := newSubscribe("slow", `{"topic":"tea","ttl":1}`)
	ctx, leave := context.WithCancel(t.Context())
	o.rec.taken = func() {
		o.rec.taken = nil // its caller holds the lock
		leave()
		key := state.Key{Tenant: "default", Gateway: uamp.Name, Realm: "lab", Kind: "subscriber", Name: string(e.ID)}
		if err := o.rt.State().Delete(t.Context(), key, 0); err != nil {
			t.Error(err)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(signedBy(t, o.own, e))).WithContext(ctx)
	r.Header.Set("Authorization", "Bearer lab-token")
	r.Header.Set("Content-Type", envelope.MediaType)
	gatewaytest.Listener(o.rt, o.g.Mounts()).ServeHTTP(httptest.NewRecorder(), r)
	if n := len(o.recordsOf(t, "lab", "subscriber")); n != 1 {
		t.Fatalf("%d records", n)
	}
	until(t, "the end of the subscription", func() bool { return len(o.recordsOf(t, "lab", "subscriber")) == 0 })
	if d, ended := o.ended(t, "/v1/stream/str-"+string(e.ID)); !ended || d.Type != envelope.DeltaCancel {
		t.Errorf("%+v", d)
	}
}
