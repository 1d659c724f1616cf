package uamp_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
)

// unsecured is a capability token that is not signed.
func unsecured(t *testing.T) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{"iss": labDID, "sub": labDID, "aud": calcDID, "scope": "uamp:*", "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(claims) + "."
}

// forgeries are what an attacker without the sender's key does to an envelope, and its code.
func forgeries(t *testing.T, o *out) map[string]struct {
	forge func(envelope.Envelope) string
	want  envelope.Code
} {
	evil := key(t, "did:web:evil.example", private("e"))
	changed := func(change func(*envelope.Envelope)) func(envelope.Envelope) string {
		return func(e envelope.Envelope) string {
			change(&e)
			return signedBy(t, o.own, e)
		}
	}
	edited := func(old, by string) func(envelope.Envelope) string {
		return func(e envelope.Envelope) string { return strings.Replace(signedBy(t, o.own, e), old, by, 1) }
	}
	token := func(by seal.Key, change func(*seal.Claims)) func(*envelope.Envelope) {
		return func(e *envelope.Envelope) {
			c := seal.Claims{Issuer: labDID, Subject: labDID, Audience: []string{hostDID}, Scope: []string{"uamp:*"}, Expires: time.Now().Add(time.Hour)}
			change(&c)
			var err error
			if e.CapToken, err = by.Grant(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	header := func(text string) func(envelope.Envelope) string {
		return func(e envelope.Envelope) string {
			e.Sig = base64.RawURLEncoding.EncodeToString([]byte(text)) + ".." + base64.RawURLEncoding.EncodeToString(make([]byte, 64))
			raw, err := e.Text()
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
	}
	kid := o.own.Public().ID
	type forgery = struct {
		forge func(envelope.Envelope) string
		want  envelope.Code
	}
	return map[string]forgery{
		"an altered byte":       {edited("calc", "calk"), envelope.Unauthenticated},
		"another key":           {func(e envelope.Envelope) string { return signedBy(t, evil.WithID(kid), e) }, envelope.Unauthenticated},
		"the key of another":    {func(e envelope.Envelope) string { return signedBy(t, evil, e) }, envelope.Unauthenticated},
		"alg none":              {header(`{"alg":"none","kid":"` + kid + `"}`), envelope.Unauthenticated},
		"alg HS256":             {header(`{"alg":"HS256","kid":"` + kid + `"}`), envelope.Unauthenticated},
		"another type of key":   {header(`{"alg":"ES256","kid":"` + kid + `"}`), envelope.Unauthenticated},
		"a critical header":     {header(`{"alg":"EdDSA","kid":"` + kid + `","crit":["x"],"x":1}`), envelope.Unauthenticated},
		"the past":              {changed(func(e *envelope.Envelope) { e.Time = time.Now().Add(-time.Hour) }), envelope.Unauthenticated},
		"the future":            {changed(func(e *envelope.Envelope) { e.Time = time.Now().Add(time.Hour) }), envelope.Unauthenticated},
		"another sender":        {changed(func(e *envelope.Envelope) { e.From = "did:web:evil.example" }), envelope.Unauthorized},
		"a member twice":        {edited(`{"body"`, `{"body":{"type":"text/plain","content":"3"},"body"`), envelope.Malformed},
		"an unknown member":     {edited(`{"body"`, `{"x":1,"body"`), envelope.Malformed},
		"a token without alg":   {changed(func(e *envelope.Envelope) { e.CapToken = unsecured(t) }), envelope.Unauthenticated},
		"a token for elsewhere": {changed(token(o.own, func(c *seal.Claims) { c.Audience = []string{"did:web:evil.example"} })), envelope.Unauthenticated},
		"a token that is over":  {changed(token(o.own, func(c *seal.Claims) { c.Expires = time.Now().Add(-time.Hour) })), envelope.Unauthenticated},
		"a token by a kid away": {changed(token(evil, func(*seal.Claims) {})), envelope.Unauthenticated},
		"a token of a stranger": {changed(token(evil, func(c *seal.Claims) { c.Issuer = "did:web:evil.example" })), envelope.Unauthenticated},
		"a token for less":      {changed(token(o.own, func(c *seal.Claims) { c.Scope = []string{"uamp:none"} })), envelope.Unauthorized},
	}
}

// TestForgedWritesNothing (U-016, U-022, U-023, U-027, U-042, U-104, V-U05, V-U07, V-U10, V-U19): what is forged has the
// document's code, whatever it wants, and leaves neither a record nor a message. Nothing is fetched
// for it, and a replay changes nothing.
func TestForgedWritesNothing(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	taken := newAsk("slow", "2+2")
	o.take(t, taken)
	subscribed := newSubscribe("slow", `{"topic":"tea","ttl":600}`)
	o.take(t, subscribed)
	before, exchanges := o.rec.store.written(), len(o.rt.Events())
	wanted := map[envelope.Intent]envelope.Envelope{envelope.Subscribe: newSubscribe("calc", `{"topic":"tea","ttl":600}`)}
	for _, intent := range []envelope.Intent{envelope.Ask, envelope.Propose, envelope.Inform, envelope.Notify, envelope.Cancel, envelope.Progress, envelope.Confirm, envelope.Deny} {
		e := newAsk("calc", "2+2")
		if e.Intent = intent; intent == envelope.Cancel || intent == envelope.Progress {
			e.ReplyTo = taken.ID
		}
		wanted[intent] = e
	}
	for intent, e := range wanted {
		for name, c := range forgeries(t, o) {
			e.ID = envelope.NewID()
			r := o.post(t, "lab-token", c.forge(e))
			var body struct{ Code envelope.Code }
			if s, err := (envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 64}).Read([]byte(r.text)); err == nil {
				r.text = s.Body.Content
			}
			if json.Unmarshal([]byte(r.text), &body) != nil || body.Code != c.want || r.status != c.want.Status() {
				t.Errorf("%s of %s: %d %s, want %s", name, intent, r.status, r.text, c.want)
			}
		}
	}
	o.take(t, taken)
	o.take(t, subscribed)
	if n := o.rec.store.written() - before; n != 0 {
		t.Errorf("%d writes", n)
	}
	for _, e := range o.rt.Events()[exchanges:] {
		if e.Verdict != "refused" && e.Verdict != "duplicate" {
			t.Errorf("%+v", e)
		}
	}
	if n := o.web.fetched.Load(); n != 0 {
		t.Errorf("%d fetches", n)
	}
}

// TestUnsubscribeRaces (U-085, U-089, U-093): the request of a subscription has one answer, and
// its record goes, where our agent ends it just as its partner does.
func TestUnsubscribeRaces(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	runs(t, o.g)
	for n := range 20 {
		id := "s" + string(rune('a'+n))
		o.carry(t, id, subscribing(id, "subscribe", `,"topic":"tea"`), gateway.Taken)
		got, _ := o.lab.take()
		var both sync.WaitGroup
		both.Go(func() { o.g.Carry(t.Context(), o.p, subscribing("u"+id, "unsubscribe", "")) })
		both.Go(func() { o.send(t, about(got[0], envelope.Notify, "the last")) })
		both.Go(func() { o.send(t, about(got[0], envelope.Confirm, "that was all")) })
		both.Wait()
		until(t, "the end of the record", func() bool { return o.subscriptions(t) == 0 })
		answers := 0
		for _, a := range o.rec.take() {
			if a.Kind == gateway.Answers {
				answers++
			}
		}
		if answers != 1 {
			t.Errorf("%d answers", answers)
		}
		o.lab.take()
	}
}

// TestSubscribePartnerGoes (U-093): where a reload has removed the partner, its subscriptions wait
// for it, and their requests are answered at the end of their time. With the partner they go on.
func TestSubscribePartnerGoes(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	o.lab.does(func(w http.ResponseWriter, _ envelope.Signed) { w.WriteHeader(http.StatusAccepted) }, nil)
	o.carry(t, "short", subscribing("short", "subscribe", `,"topic":"tea","ttl":1`), gateway.Taken)
	o.carry(t, "long", subscribing("long", "subscribe", `,"topic":"milk","ttl":600`), gateway.Taken)
	got, _ := o.lab.take()
	o.rec.hide(true)
	runs(t, o.g)
	if list := o.told(t, 1); list[0] != `answers|Subscription over|The time of the subscription to "tea" is over.` {
		t.Error(list)
	}
	until(t, "the end of one record", func() bool { return o.subscriptions(t) == 1 })
	if sent, _ := o.lab.take(); len(sent) > 0 {
		t.Errorf("%d envelopes to a partner that is gone", len(sent))
	}
	o.rec.hide(false)
	o.take(t, about(got[1], envelope.Notify, "white"))
	if list := o.told(t, 1); list[0] != "tells|white|white" {
		t.Error(list)
	}
}
