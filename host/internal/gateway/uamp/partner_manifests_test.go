package uamp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// manifestOf is a manifest of the lab's agent, with a change.
func manifestOf(change func(*envelope.Manifest)) envelope.Manifest {
	m := envelope.Manifest{
		Agent: envelope.Version, Description: "x", Intents: []string{"ask", "inform"}, BodyTypes: []string{"text/*"}, Auth: []string{"oauth2"}, Limits: envelope.ManifestLimits{MaxBodyKB: 8},
	}
	if change != nil {
		change(&m)
	}
	return m
}

// signedManifest is a manifest that a key has signed for an issuer.
func signedManifest(t *testing.T, k seal.Key, issuer string, m envelope.Manifest, expires time.Time) string {
	t.Helper()
	payload, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	text, err := k.SignDocument(payload, issuer, time.Now(), expires)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// shows lets the lab show a manifest, and counts how often it is read.
func (l *lab) shows(status int, kind, text string) (reads *atomic.Int64) {
	reads = new(atomic.Int64)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.manifest = func(w http.ResponseWriter, r *http.Request) {
		if reads.Add(1); r.URL.Path != "/agents/x/agent-manifest.json" || r.Header.Get("Accept") != envelope.ManifestType {
			l.t.Errorf("%s, accepting %q", r.URL, r.Header.Get("Accept"))
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
	return reads
}

// TestPartnerManifest (U-100, U-103, V-U14): before an envelope is sent it is held against the
// manifest of its recipient, which must be signed by that. An agent without one takes all. One
// that refuses is read again for the next envelope.
func TestPartnerManifest(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	signed := func(t *testing.T, o *out, change func(*envelope.Manifest)) string {
		return signedManifest(t, o.own, labDID, manifestOf(change), later)
	}
	for name, c := range map[string]struct {
		status int
		kind   string
		text   func(*testing.T, *out) string
		state  gateway.CarriedState
		reason string
	}{
		"taken": {200, envelope.ManifestType, func(t *testing.T, o *out) string { return signed(t, o, nil) }, gateway.Taken, ""},
		"no intent": {200, envelope.ManifestType, func(t *testing.T, o *out) string {
			return signed(t, o, func(m *envelope.Manifest) { m.Intents = []string{"notify"} })
		}, gateway.Refused, "does not list the intent inform"},
		"no body type": {200, envelope.ManifestType, func(t *testing.T, o *out) string {
			return signed(t, o, func(m *envelope.Manifest) { m.BodyTypes = []string{"image/*"} })
		}, gateway.Refused, `does not list the body type "text/plain"`},
		"too large": {200, envelope.ManifestType, func(t *testing.T, o *out) string {
			return signed(t, o, func(m *envelope.Manifest) { m.Limits.MaxBodyKB = 1 })
		}, gateway.Refused, "takes at most 1 KiB"},
		"another key": {200, envelope.ManifestType, func(t *testing.T, _ *out) string {
			return signedManifest(t, key(t, labDID, private("e")), labDID, manifestOf(nil), later)
		}, gateway.Refused, "does not count"},
		"another agent's": {200, envelope.ManifestType, func(t *testing.T, o *out) string {
			return signedManifest(t, o.own, labDID+"2", manifestOf(nil), later)
		}, gateway.Refused, "it is of the issuer"},
		"expired": {200, envelope.ManifestType, func(t *testing.T, o *out) string {
			return signedManifest(t, o.own, labDID, manifestOf(nil), time.Now().Add(-time.Hour))
		}, gateway.Refused, "it has expired"},
		"no signature":  {200, envelope.ManifestType, func(*testing.T, *out) string { return "{}" }, gateway.Refused, "compact JWS"},
		"endless":       {200, envelope.ManifestType, func(*testing.T, *out) string { return strings.Repeat("a", 128<<10+1) }, gateway.Refused, "more than 131072 bytes"},
		"no manifest":   {404, "text/plain", func(*testing.T, *out) string { return "" }, gateway.Taken, ""},
		"a web page":    {200, "text/html", func(*testing.T, *out) string { return "<p>" }, gateway.Taken, ""},
		"out of order":  {500, envelope.ManifestType, func(*testing.T, *out) string { return "" }, gateway.Taken, ""},
		"of no content": {200, envelope.ManifestType, func(*testing.T, *out) string { return "" }, gateway.Taken, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOut(t)
			reads := o.lab.shows(c.status, c.kind, c.text(t, o))
			for _, id := range []string{"m1", "m2"} {
				got := o.carry(t, id, outgoing(id, mail.Broadcast, "x", "hello"+strings.Repeat(" ", 1<<10)), c.state)
				if !strings.Contains(got.Reason, c.reason) {
					t.Errorf("%s: %q", id, got.Reason)
				}
			}
			sent, _ := o.lab.take()
			want := int64(1)
			if strings.HasPrefix(c.reason, "does not list") || strings.HasPrefix(c.reason, "takes at most") {
				want = 2
			}
			if n := reads.Load(); n != want || len(sent) != map[gateway.CarriedState]int{gateway.Taken: 2}[c.state] {
				t.Errorf("%d reads, %d envelopes", n, len(sent))
			}
		})
	}
}

// TestPartnerManifestOnce (U-103): many messages read a manifest once, a key that is pinned
// anew lets it be read again, and a repeat of what may have arrived is not held against it.
func TestPartnerManifestOnce(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	reads := o.lab.shows(http.StatusOK, envelope.ManifestType, signedManifest(t, o.own, labDID, manifestOf(nil), time.Now().Add(time.Hour)))
	o.lab.does(func(w http.ResponseWriter, _ envelope.Signed) { w.WriteHeader(http.StatusInternalServerError) }, nil)
	d := outgoing("m1", mail.Broadcast, "x", "hello")
	o.carry(t, "in doubt", d, gateway.Unanswered)
	o.p.Options["keys"] = []string{string(key(t, labDID, private("n")).Public().JWK())}
	o.rt.AddPartner(o.p)
	o.lab.does(nil, nil)
	o.carry(t, "the repeat", d, gateway.Taken)
	if n := reads.Load(); n != 1 {
		t.Errorf("%d reads before", n)
	}
	for _, id := range []string{"m2", "m3"} {
		got := o.carry(t, id, outgoing(id, mail.Broadcast, "x", "hello"), gateway.Refused)
		if !strings.Contains(got.Reason, "does not count") {
			t.Error(got.Reason)
		}
	}
	if n := reads.Load(); n != 2 {
		t.Errorf("%d reads", n)
	}
}

// TestPartnerManifestChanges (U-103): what a kept manifest does not list is refused by the
// manifest that the partner shows now. It is read once for many envelopes at a time, and not
// again for a while.
func TestPartnerManifestChanges(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	later := time.Now().Add(time.Hour)
	shows := func(intents ...string) *atomic.Int64 {
		return o.lab.shows(http.StatusOK, envelope.ManifestType, signedManifest(t, o.own, labDID, manifestOf(func(m *envelope.Manifest) { m.Intents = intents }), later))
	}
	told := func(id string) swarm.Delivery { return outgoing(id, mail.Broadcast, "x", "hello") }
	shows("ask")
	o.carry(t, "before", told("m0"), gateway.Refused)
	reads := shows("ask", "inform")
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			if got := o.g.Carry(t.Context(), o.p, told(fmt.Sprint("new", n))); got.State != gateway.Taken {
				t.Errorf("%+v", got)
			}
		})
	}
	all.Wait()
	o.carry(t, "after", told("m1"), gateway.Taken)
	if n := reads.Load(); n != 1 {
		t.Errorf("%d reads for what is new", n)
	}
	propose := outgoing("m2", mail.Request, "x", "tea?")
	propose.Wrapper.Payload.RoutingInfo = json.RawMessage(`{"remote_swarm":"lab","gateway":{"protocol":"uamp","type":"propose"}}`)
	o.carry(t, "what it never takes", propose, gateway.Refused)
	if n := reads.Load(); n != 1 {
		t.Errorf("%d reads within the rest", n)
	}
}
