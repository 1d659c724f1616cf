package uamp_test

import (
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
)

const labDID = "did:web:lab.example:agents:x"

// web serves the documents of DIDs by their addresses, and counts how often.
type web struct {
	documents map[string]did.Document
	fetched   atomic.Int64
	// answer answers instead, if it is set.
	answer func(*http.Request) (*http.Response, error)
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	w.fetched.Add(1)
	if w.answer != nil {
		return w.answer(r)
	}
	d, ok := w.documents[r.URL.String()]
	if !ok {
		return nil, errors.New("dial tcp 10.0.0.7:443: refused")
	}
	text, err := json.Marshal(d)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(text)))}, err
}

// key is a key of a DID.
func key(t testing.TB, id string, private crypto.Signer) seal.Key {
	t.Helper()
	k, err := seal.NewKey(id+"#k", private)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// proofs is a host whose partner is lab, with one agent whose document is on the web.
type proofs struct {
	*uamp.Proof
	web *web
	lab gateway.Caller
}

func newProofs(t *testing.T, partner gateway.Partner, requireToken bool) proofs {
	t.Helper()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	partner.Name = "lab"
	if partner.IDs == nil {
		partner.IDs = []string{"did:web:lab.example:*"}
	}
	rt.AddPartner(partner)
	d, err := uamp.NewDocuments(uamp.Options{Runtime: rt, DID: hostDID, Keys: uamp.Keys{Current: private("h")}})
	if err != nil {
		t.Fatal(err)
	}
	w := &web{documents: map[string]did.Document{
		"https://lab.example/agents/x/did.json": {ID: labDID, Keys: []seal.PublicKey{key(t, labDID, private("l")).Public()}},
	}}
	return proofs{d.NewProof(did.NewResolver(w, d.Log), requireToken), w, gatewaytest.Realm("", "lab")}
}

// signed is an envelope of a sender, signed with a key after a change.
func signed(t *testing.T, from string, k seal.Key, change func(*envelope.Envelope)) envelope.Signed {
	t.Helper()
	e := envelope.Envelope{
		ID: envelope.NewID(), Time: time.Now(), From: from, To: []string{calcDID}, Intent: envelope.Ask, Window: 64, Body: envelope.NewBody("text/plain", []byte("2+2")),
	}
	if change != nil {
		change(&e)
	}
	s, err := envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 64}.Read([]byte(signedBy(t, k, e)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check compares the code of a refusal; empty is none.
func check(t *testing.T, what string, err error, want envelope.Code) {
	t.Helper()
	var f *envelope.Fault
	switch {
	case err == nil && want == "":
	case !errors.As(err, &f) || f.Code != want:
		t.Errorf("%s: %v, want %q", what, err, want)
	case strings.Contains(f.Text, "10.0.0.7"):
		t.Errorf("%s tells what was met on the way: %s", what, f.Text)
	}
}

// TestProof (V-U06, V-U08, V-U09, U-027, U-044): an envelope counts that is signed with a
// key of its sender, who is the caller's.
func TestProof(t *testing.T) {
	t.Parallel()
	p := newProofs(t, gateway.Partner{}, false)
	own := key(t, labDID, private("l"))
	check(t, "its own", p.Check(t.Context(), p.lab, signed(t, labDID, own, nil)), "")
	check(t, "again", p.Check(t.Context(), p.lab, signed(t, labDID, own, nil)), "")
	if n := p.web.fetched.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
	check(t, "another key", p.Check(t.Context(), p.lab, signed(t, labDID, key(t, labDID, private("e")), nil)), envelope.Unauthenticated)
	check(t, "a key of another DID", p.Check(t.Context(), p.lab, signed(t, labDID, key(t, "did:web:evil.example", private("l")), nil)), envelope.Unauthenticated)
	check(t, "an unknown key id", p.Check(t.Context(), p.lab, signed(t, labDID, own.WithID(labDID+"#other"), nil)), envelope.Unauthenticated)
	changed := signed(t, labDID, own, nil)
	other := signed(t, labDID, own, func(e *envelope.Envelope) { e.Body.Content = "3+3" })
	other.Sig = changed.Sig
	check(t, "another body", p.Check(t.Context(), p.lab, other), envelope.Unauthenticated)
	other.Sig = "x"
	check(t, "no signature", p.Check(t.Context(), p.lab, other), envelope.Unauthenticated)
	check(t, "a user", p.Check(t.Context(), gatewaytest.User("", "ann"), changed), envelope.Unauthorized)
	check(t, "another realm", p.Check(t.Context(), gatewaytest.Realm("", "shop"), changed), envelope.Unauthorized)
}

// TestNoDocument (U-031, U-104): who has no document that can be used is not known; while it
// cannot be fetched, a later attempt may succeed.
func TestNoDocument(t *testing.T) {
	t.Parallel()
	answer := func(status int, text string) func(*http.Request) (*http.Response, error) {
		return func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(text))}, nil
		}
	}
	fail := func(err error) func(*http.Request) (*http.Response, error) {
		return func(*http.Request) (*http.Response, error) { return nil, err }
	}
	wrong := newProofs(t, gateway.Partner{IDs: []string{"did:web:*"}}, false)
	for from, why := range map[string]string{
		"did:web:lab.example%3A99999": `its port "99999" is not a number from 1 to 65535`, "did:web:lab.example::x": `its path has a part ""`,
	} {
		s := signed(t, from, key(t, from, private("l")), nil)
		err := wrong.Check(t.Context(), wrong.lab, s)
		if check(t, from, err, envelope.Unauthenticated); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", from, err)
		}
	}
	for name, c := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		want   envelope.Code
	}{
		"not found":         {answer(http.StatusNotFound, ""), envelope.Unauthenticated},
		"gone":              {answer(http.StatusGone, ""), envelope.Unauthenticated},
		"elsewhere":         {answer(http.StatusFound, ""), envelope.Unauthenticated},
		"of another":        {answer(http.StatusOK, `{"id":"did:web:evil.example"}`), envelope.Unauthenticated},
		"a private address": {fail(&abi.Error{Code: abi.CodeDenied, Message: "10.0.0.7 is private"}), envelope.Unauthenticated},
		"not reached":       {fail(errors.New("dial tcp 10.0.0.7:443: refused")), envelope.Busy},
		"a failing host":    {answer(http.StatusBadGateway, ""), envelope.Busy},
		"a busy host":       {answer(http.StatusTooManyRequests, ""), envelope.Busy},
	} {
		p := newProofs(t, gateway.Partner{}, false)
		p.web.answer = c.answer
		s := signed(t, "did:web:lab.example:agents:y", key(t, "did:web:lab.example:agents:y", private("l")), nil)
		err := p.Check(t.Context(), p.lab, s)
		check(t, name, err, c.want)
		if f := (*envelope.Fault)(nil); errors.As(err, &f) && (f.RetryAfter > 0) != (c.want == envelope.Busy) {
			t.Errorf("%s: again after %s", name, f.RetryAfter)
		}
	}
}

// endless is a document that does not end, or breaks off with an error after some bytes.
type endless struct {
	left int // of the bytes that come, below 0 for all
	read *atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, errors.New("read tcp 10.0.0.7:443: connection reset")
	}
	if e.left > 0 {
		p = p[:min(len(p), e.left)]
		e.left -= len(p)
	}
	for i := range p {
		p[i] = ' '
	}
	e.read.Add(int64(len(p)))
	return len(p), nil
}

// TestEndlessDocument (U-031, U-104): of a document no more is read than one may have, within a time.
// One that breaks off may come whole later.
func TestEndlessDocument(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left int
		want envelope.Code
	}{"without an end": {-1, envelope.Unauthenticated}, "broken off": {1000, envelope.Busy}} {
		p := newProofs(t, gateway.Partner{}, false)
		var read atomic.Int64
		p.web.answer = func(r *http.Request) (*http.Response, error) {
			if _, bounded := r.Context().Deadline(); !bounded {
				t.Errorf("%s: the fetch has no time", name)
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&endless{c.left, &read})}, nil
		}
		check(t, name, p.Check(t.Context(), p.lab, signed(t, labDID, key(t, labDID, private("l")), nil)), c.want)
		if n := read.Load(); n > 2*did.MaxDocument {
			t.Errorf("%s: %d bytes are read", name, n)
		}
	}
}

// TestForgedSenders (contract case 13, 1.7): nothing is fetched for a sender that is not
// the caller's, and for the caller's own at most ten in a minute.
func TestForgedSenders(t *testing.T) {
	t.Parallel()
	p := newProofs(t, gateway.Partner{}, false)
	s := signed(t, labDID, key(t, labDID, private("l")), nil)
	for i := range 10_000 {
		s.From = fmt.Sprintf("did:web:h%d.example", i)
		check(t, s.From, p.Check(t.Context(), p.lab, s), envelope.Unauthorized)
	}
	if n := p.web.fetched.Load(); n != 0 {
		t.Errorf("%d fetches", n)
	}
	for i := range 100 {
		s.From = fmt.Sprintf("did:web:lab.example:h%d", i)
		s.Sig = signed(t, s.From, key(t, s.From, private("l")), nil).Sig
		want := envelope.Busy // the web has no such host
		if i >= 10 {
			want = envelope.TooMany
		}
		check(t, s.From, p.Check(t.Context(), p.lab, s), want)
	}
	if n := p.web.fetched.Load(); n != 10 {
		t.Errorf("%d fetches", n)
	}
}

// TestPinnedKeys (U-032): with pinned keys nothing is fetched, and they alone count; other
// URIs need them, and a did:key needs nothing.
func TestPinnedKeys(t *testing.T) {
	t.Parallel()
	const page = "https://lab.example/agent"
	own := key(t, labDID, private("p"))
	didKey := "did:key:" + own.Public().Multikey()
	ids := []string{"did:web:lab.example:*", "did:key:*", page}
	pinned := newProofs(t, gateway.Partner{IDs: ids, Options: map[string]any{"keys": []string{string(own.Public().JWK())}}}, false)
	check(t, "the pinned key", pinned.Check(t.Context(), pinned.lab, signed(t, labDID, own, nil)), "")
	check(t, "the document's key", pinned.Check(t.Context(), pinned.lab, signed(t, labDID, key(t, labDID, private("l")), nil)), envelope.Unauthenticated)
	check(t, "a URI", pinned.Check(t.Context(), pinned.lab, signed(t, page, key(t, page, private("p")), nil)), "")
	unpinned := newProofs(t, gateway.Partner{IDs: ids}, false)
	check(t, "a URI without a key", unpinned.Check(t.Context(), unpinned.lab, signed(t, page, key(t, page, private("p")), nil)), envelope.Unauthenticated)
	inIt := own.WithID(didKey + "#" + own.Public().Multikey())
	check(t, "a did:key", unpinned.Check(t.Context(), unpinned.lab, signed(t, didKey, inIt, nil)), "")
	check(t, "another key than its own", unpinned.Check(t.Context(), unpinned.lab, signed(t, didKey, key(t, labDID, private("l")).WithID(didKey+"#"+own.Public().Multikey()), nil)), envelope.Unauthenticated)
	if n := pinned.web.fetched.Load() + unpinned.web.fetched.Load(); n != 0 {
		t.Errorf("%d fetches", n)
	}
}

// TestCapabilities (V-U19, U-042): a token must be for the recipient, from the sender or
// from here; without one require_cap_token decides.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	own := key(t, labDID, private("l"))
	here, err := seal.NewKey("", private("h"))
	if err != nil {
		t.Fatal(err)
	}
	here = here.WithID(calcDID + "#" + here.Public().Thumbprint())
	claims := seal.Claims{Issuer: labDID, Audience: []string{hostDID}, Scope: []string{"uamp:ask"}, Expires: time.Now().Add(time.Hour)}
	p := newProofs(t, gateway.Partner{}, true)
	for name, c := range map[string]struct {
		by     seal.Key
		change func(*seal.Claims)
		want   envelope.Code
	}{
		"of the sender":       {own, func(*seal.Claims) {}, ""},
		"of the recipient":    {here, func(c *seal.Claims) { c.Issuer = calcDID }, ""},
		"of the host":         {here.WithID(hostDID + "#" + here.Public().Thumbprint()), func(c *seal.Claims) { c.Issuer, c.Subject = hostDID, labDID }, ""},
		"of another agent":    {here.WithID(hostDID + ":agents:hive:vault#" + here.Public().Thumbprint()), func(c *seal.Claims) { c.Issuer = hostDID + ":agents:hive:vault" }, envelope.Unauthenticated},
		"forged for here":     {own.WithID(here.Public().ID), func(c *seal.Claims) { c.Issuer = calcDID }, envelope.Unauthenticated},
		"of a stranger":       {own, func(c *seal.Claims) { c.Issuer = "did:web:evil.example" }, envelope.Unauthenticated},
		"with a foreign key":  {own.WithID("did:web:evil.example#k"), func(*seal.Claims) {}, envelope.Unauthenticated},
		"for another host":    {own, func(c *seal.Claims) { c.Audience = []string{"did:web:evil.example"} }, envelope.Unauthenticated},
		"expired":             {own, func(c *seal.Claims) { c.Expires = time.Now().Add(-time.Hour) }, envelope.Unauthenticated},
		"for another intent":  {own, func(c *seal.Claims) { c.Scope = []string{"uamp:inform"} }, envelope.Unauthorized},
		"for this agent":      {own, func(c *seal.Claims) { c.Scope = append([]string{"agent:calc"}, c.Scope...) }, ""},
		"for another agent":   {own, func(c *seal.Claims) { c.Scope = append([]string{"agent:vault"}, c.Scope...) }, envelope.Unauthorized},
		"of another's sender": {own, func(c *seal.Claims) { c.Subject = "did:web:lab.example:agents:y" }, envelope.Unauthenticated},
	} {
		changed := claims
		c.change(&changed)
		token, err := c.by.Grant(changed)
		if err != nil {
			t.Fatal(err)
		}
		check(t, name, p.Check(t.Context(), p.lab, signed(t, labDID, own, func(e *envelope.Envelope) { e.CapToken = token })), c.want)
	}
	check(t, "no token", p.Check(t.Context(), p.lab, signed(t, labDID, own, nil)), envelope.Unauthorized)
	check(t, "no token at all", p.Check(t.Context(), p.lab, signed(t, labDID, own, func(e *envelope.Envelope) { e.CapToken = "eyJ…" })), envelope.Unauthenticated)
}

// TestDelegatedCapabilities (U-042): a token is no link of a chain: one that was granted to an agent
// counts for no other, and no agent can pass on what it was granted.
func TestDelegatedCapabilities(t *testing.T) {
	t.Parallel()
	const y = "did:web:lab.example:agents:y"
	own, third, here := key(t, labDID, private("l")), key(t, y, private("y")), key(t, "", private("h"))
	here = here.WithID(calcDID + "#" + here.Public().Thumbprint())
	p := newProofs(t, gateway.Partner{}, true)
	p.web.documents["https://lab.example/agents/y/did.json"] = did.Document{ID: y, Keys: []seal.PublicKey{third.Public()}}
	for name, c := range map[string]struct {
		by              seal.Key
		issuer, subject string
		want            envelope.Code
	}{
		"granted here to the sender":        {here, calcDID, labDID, ""},
		"granted here to anyone":            {here, calcDID, "", ""},
		"granted here to another":           {here, calcDID, y, envelope.Unauthenticated},
		"passed on by another":              {third, y, labDID, envelope.Unauthenticated},
		"passed on to anyone":               {third, y, "", envelope.Unauthenticated},
		"passed on in the name of here":     {third.WithID(here.Public().ID), calcDID, labDID, envelope.Unauthenticated},
		"passed on in the name of a sender": {third.WithID(own.Public().ID), labDID, labDID, envelope.Unauthenticated},
	} {
		token, err := c.by.Grant(seal.Claims{Issuer: c.issuer, Subject: c.subject, Audience: []string{calcDID}, Scope: []string{"uamp:ask"}, Expires: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		check(t, name, p.Check(t.Context(), p.lab, signed(t, labDID, own, func(e *envelope.Envelope) { e.CapToken = token })), c.want)
	}
}
