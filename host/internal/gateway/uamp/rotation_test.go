package uamp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
	"skep/spec/mail"
)

// rotating is a partner's host, without a socket, whose agent has a key after another.
type rotating struct {
	rec  *recorder
	g    *uamp.Gateway
	p    gateway.Partner
	web  *web
	http http.Handler
	// signer is the key that signs manifests, manifests counts how often one is read.
	signer    seal.Key
	manifests atomic.Int32

	mu   sync.Mutex
	sent []envelope.Signed
}

// RoundTrip implements [http.RoundTripper].
func (r *rotating) RoundTrip(req *http.Request) (*http.Response, error) {
	rsp := httptest.NewRecorder()
	if req.Method == http.MethodGet {
		r.manifests.Add(1)
		payload := `{"agent":"uamp/1.0","description":"x","intents":["inform","subscribe","cancel"],"body_types":["text/*","application/json"],"auth":["oauth2"],"limits":{}}`
		text, err := r.signer.SignDocument([]byte(payload), labDID, time.Now(), time.Now().Add(time.Hour))
		if err != nil {
			return nil, err
		}
		rsp.Header().Set("Content-Type", envelope.ManifestType)
		_, _ = io.WriteString(rsp, text)
		return rsp.Result(), nil
	}
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	s, err := envelope.Reader{Strict: true, MaxBytes: 1 << 20, MaxDepth: 64}.Read(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, s)
	rsp.WriteHeader(http.StatusAccepted)
	return rsp.Result(), err
}

// taken are the envelopes that have come.
func (r *rotating) taken() []envelope.Signed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sent)
}

// publish has the agent's document show keys.
func (r *rotating) publish(keys ...seal.Key) {
	d := did.Document{ID: labDID}
	for _, k := range keys {
		d.Keys = append(d.Keys, k.Public())
	}
	r.web.documents = map[string]did.Document{"https://lab.example/agents/x/did.json": d}
}

// notify sends an event that a key has signed.
func (r *rotating) notify(t *testing.T, k seal.Key, text string, want int) {
	t.Helper()
	e := about(r.taken()[0], envelope.Notify, text)
	e.ReplyTo = ""
	req := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(signedBy(t, k, e)))
	req.Header.Set("Authorization", "Bearer lab-token")
	req.Header.Set("Content-Type", envelope.MediaType)
	rsp := httptest.NewRecorder()
	r.http.ServeHTTP(rsp, req)
	if rsp.Code != want {
		t.Errorf("%s: %d %s, want %d", text, rsp.Code, rsp.Body, want)
	}
}

func newRotating(t *testing.T) *rotating {
	t.Helper()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	lab := gatewaytest.Realm("default", "lab")
	lab.May = gateway.Rights{gateway.MayAsk, gateway.MayTell}
	rt.Admit("lab-token", lab)
	r := &rotating{rec: &recorder{Runtime: rt, store: shaky{Store: rt.State()}}, web: &web{}}
	r.p = gateway.Partner{
		Name: "lab", Tenant: "default", IDs: []string{"did:web:lab.example:agents:*"}, May: lab.May, URL: "https://lab.example", Timeout: time.Minute,
		Client: &http.Client{Transport: r}, Options: map[string]any{},
	}
	rt.AddPartner(r.p)
	var err error
	if r.g, err = uamp.New(uamp.Options{Runtime: r.rec, DID: hostDID, Keys: uamp.Keys{Current: private("h")}, Fetch: r.web, Tenants: []string{"default"}}); err != nil {
		t.Fatal(err)
	}
	r.http = gatewaytest.Listener(rt, r.g.Mounts())
	return r
}

// TestSubscribeRotation (V-U09, U-028, U-031, U-093): the agent to whose events one of ours has
// subscribed takes another key. Events signed by the old one count for the day that both are
// published, and not after; its document is read once for the new one, and so is its manifest.
func TestSubscribeRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRotating(t)
		runs(t, r.g)
		old, next := key(t, labDID, private("l")).WithID(labDID+"#old"), key(t, labDID, private("m")).WithID(labDID+"#next")
		r.signer = old
		r.publish(old)
		carry := func(id string) {
			t.Helper()
			if got := r.g.Carry(t.Context(), r.p, outgoing(id, mail.Broadcast, "x", "news")); got.State != gateway.Taken {
				t.Errorf("%s: %+v", id, got)
			}
		}
		reads := func(what string, documents int64, manifests int32) {
			t.Helper()
			if r.web.fetched.Load() != documents || r.manifests.Load() != manifests {
				t.Errorf("%s: %d documents, %d manifests are read, want %d and %d", what, r.web.fetched.Load(), r.manifests.Load(), documents, manifests)
			}
		}
		if got := r.g.Carry(t.Context(), r.p, subscribing("s", "subscribe", `,"topic":"tea","ttl":432000`)); got.State != gateway.Taken {
			t.Fatalf("%+v", got)
		}
		r.notify(t, old, "before", http.StatusAccepted)
		reads("before", 1, 1)
		time.Sleep(time.Minute) // less than a document and a manifest are kept
		r.publish(old, next)
		r.notify(t, next, "the new key", http.StatusAccepted)
		r.notify(t, old, "the old key", http.StatusAccepted)
		r.notify(t, next, "again", http.StatusAccepted)
		carry("kept")
		reads("as the new key is met", 2, 1)
		time.Sleep(10 * time.Minute)
		r.signer = next
		for _, id := range []string{"one", "two", "three"} {
			carry(id)
		}
		r.notify(t, old, "within the day", http.StatusAccepted)
		reads("after their time", 3, 2)
		time.Sleep(24 * time.Hour)
		r.publish(next)
		r.notify(t, old, "after the day", http.StatusUnauthorized)
		r.notify(t, next, "at last", http.StatusAccepted)
		var told []string
		for _, a := range r.rec.take() {
			told = append(told, a.Body)
		}
		if want := []string{"before", "the new key", "the old key", "again", "within the day", "at last"}; !slices.Equal(told, want) {
			t.Errorf("it is told %q, want %q", told, want)
		}
	})
}

// TestOwnRotation (U-028, U-093): our agent's subscription outlives the rotation of our key: what
// ends it is signed by the new one.
func TestOwnRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRotating(t)
		ctx, stop := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- r.g.Run(ctx) }()
		r.signer = key(t, labDID, private("l"))
		r.publish(r.signer)
		if got := r.g.Carry(t.Context(), r.p, subscribing("s", "subscribe", `,"topic":"tea","ttl":3600`)); got.State != gateway.Taken {
			t.Fatalf("%+v", got)
		}
		stop()
		if err := <-first; err != nil {
			t.Error(err)
		}
		again, err := uamp.New(uamp.Options{Runtime: r.rec, DID: hostDID, Keys: uamp.Keys{Current: private("n"), Old: private("h")}, Fetch: r.web, Tenants: []string{"default"}})
		if err != nil {
			t.Fatal(err)
		}
		runs(t, again)
		time.Sleep(2 * time.Hour)
		sent := r.taken()
		if len(sent) != 2 || sent[1].Intent != envelope.Cancel || sent[1].ReplyTo != sent[0].ID {
			t.Fatalf("%+v", sent)
		}
		for n, name := range []string{"h", "n"} {
			k := key(t, "", private(name)).Public()
			k.ID = sent[n].From + "#" + k.Thumbprint()
			if _, err := seal.Verify(sent[n].Sig, sent[n].Sums, []seal.PublicKey{k}); err != nil {
				t.Errorf("%s: %v", sent[n].Intent, err)
			}
		}
	})
}
