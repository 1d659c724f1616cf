package uamp_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
)

const (
	hostDID = "did:web:hive.example%3A8443"
	calcDID = hostDID + ":agents:hive:calc"
)

func private(seed string) crypto.Signer {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat(seed, 32)))
}

// site serves the documents of a host with an entrypoint and another exposed agent.
func site(t *testing.T, keys uamp.Keys) http.Handler {
	t.Helper()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	rt.Expose("", gateway.ExposedAgent{Swarm: "hive", Name: "calc", Description: "Adds numbers.", Entrypoint: true}, nil)
	rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "vault"}, nil)
	rt.Admit("token", gatewaytest.Realm("acme", "lab"))
	d, err := uamp.NewDocuments(uamp.Options{Runtime: rt, DID: hostDID, Keys: keys, MaxBody: 1 << 20, RatePerHour: 600, Certificates: true, Since: time.Unix(1e9, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return gatewaytest.Listener(rt, d.Mounts())
}

// get reads a path, with a header, and returns its text and content type.
func get(t *testing.T, h http.Handler, path, name, value string) (text, kind string, status int) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if name != "" {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String(), w.Header().Get("Content-Type"), w.Code
}

// documentOf reads the document of a DID from where the DID is.
func documentOf(t *testing.T, h http.Handler, id string) did.Document {
	t.Helper()
	parsed, err := did.Parse(id)
	if err != nil {
		t.Fatal(err)
	}
	text, kind, status := get(t, h, strings.TrimPrefix(parsed.URL(), "https://hive.example:8443"), "", "")
	d, err := did.ReadDocument(id, []byte(text))
	if err != nil || status != http.StatusOK || kind != "application/did+json" {
		t.Fatalf("%s: %d %s, %s: %v", id, status, kind, text, err)
	}
	return d
}

// TestDocuments (U-028, U-033): the host and each name below it have a document with the
// host's key and its endpoints, exposed or not.
func TestDocuments(t *testing.T) {
	t.Parallel()
	h := site(t, uamp.Keys{Current: private("a")})
	for _, id := range []string{hostDID, calcDID, hostDID + ":agents:hive:nobody"} {
		d := documentOf(t, h, id)
		if len(d.Keys) != 1 || !strings.HasPrefix(d.Keys[0].ID, id+"#") || d.Service("UAMPMessages") != "https://hive.example:8443/v1/messages" {
			t.Errorf("%s: %+v", id, d)
		}
	}
	if m := documentOf(t, h, calcDID).Service("UAMPManifest"); m != "https://hive.example:8443/agents/hive/calc/agent-manifest.json" {
		t.Error(m)
	}
	for _, path := range []string{"/agents/hive/calc", "/agents/hive/calc/other.json", "/agents/hive/calc/x/did.json", "/agents/hive//did.json", "/agents/hive/%2e%2e/did.json", "/agents/hive/a%3Ab/did.json"} {
		if _, _, status := get(t, h, path, "", ""); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// TestManifests (V-U14, U-100, U-101, U-015): manifests are signed with a key of the
// agent's document, and only those are served that the reader may see.
func TestManifests(t *testing.T) {
	t.Parallel()
	h := site(t, uamp.Keys{Current: private("a")})
	for path, id := range map[string]string{"/.well-known/agent-manifest.json": hostDID, "/agents/hive/calc/agent-manifest.json": calcDID} {
		text, kind, status := get(t, h, path, "", "")
		payload, err := seal.ReadDocument(text, id, documentOf(t, h, id).Keys, time.Now())
		if err != nil || kind != "application/manifest+jws" || status != http.StatusOK {
			t.Fatalf("%s: %d %s: %v", path, status, kind, err)
		}
		m, err := envelope.ReadManifest(payload)
		if err != nil || len(m.Intents) != 10 || m.Limits != (envelope.ManifestLimits{MaxBodyKB: 1024, RateLPH: 600}) || !slices.Equal(m.Auth, []string{"oauth2", "mtls"}) {
			t.Errorf("%s: %+v, %v", path, m, err)
		}
		if id == calcDID && m.Description != "Adds numbers." {
			t.Error(m.Description)
		}
	}
	const vault = "/agents/hive/vault/agent-manifest.json"
	unseen, _, status := get(t, h, vault, "", "")
	unknown, _, _ := get(t, h, "/agents/hive/nobody/agent-manifest.json", "", "")
	if status != http.StatusNotFound || unseen != unknown {
		t.Errorf("%d: %s, %s", status, unseen, unknown)
	}
	if _, _, status := get(t, h, vault, "Authorization", "Bearer token"); status != http.StatusOK {
		t.Errorf("its realm: %d", status)
	}
}

// TestHub (V-U15, U-102, D-U18): the list has what the reader may see, with hashes of what
// is signed, and is signed for who asks for that.
func TestHub(t *testing.T) {
	t.Parallel()
	h := site(t, uamp.Keys{Current: private("a")})
	text, kind, _ := get(t, h, "/.well-known/agent-hub.json", "", "")
	hub, err := envelope.ReadHub([]byte(text))
	if err != nil || kind != "application/json" || len(hub.Manifests) != 2 || len(hub.Anchors) != 1 || hub.Anchors[0].Value != hostDID || !hub.Updated.Equal(time.Unix(1e9, 0)) {
		t.Fatalf("%s %s: %v", kind, text, err)
	}
	for _, child := range hub.Manifests {
		signed, _, _ := get(t, h, strings.TrimPrefix(child.URL, "https://hive.example:8443"), "", "")
		payload, err := seal.ReadDocument(signed, child.Agent, documentOf(t, h, child.Agent).Keys, time.Now())
		if sum := sha256.Sum256(payload); err != nil || hex.EncodeToString(sum[:]) != child.SHA256 {
			t.Errorf("%s: %x, %v", child.Agent, sum, err)
		}
	}
	signed, kind, _ := get(t, h, "/.well-known/agent-hub.json", "Accept", "application/manifest+jws")
	payload, err := seal.ReadDocument(signed, hostDID, documentOf(t, h, hostDID).Keys, time.Now())
	if err != nil || kind != "application/manifest+jws" || string(payload) != text {
		t.Errorf("%s %s: %v", kind, payload, err)
	}
	more, _, _ := get(t, h, "/.well-known/agent-hub.json", "Authorization", "Bearer token")
	if !strings.Contains(more, ":agents:hive:vault") || strings.Contains(text, "vault") {
		t.Errorf("%s", more)
	}
}

// TestRotation (V-U09, U-028): a new key is published before it signs, and the old one
// after it has signed.
func TestRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now().Add(time.Hour)
		h := site(t, uamp.Keys{Current: private("a"), Next: private("b"), NextFrom: from, Old: private("c")})
		keys := documentOf(t, h, hostDID).Keys
		if len(keys) != 3 {
			t.Fatalf("%d keys", len(keys))
		}
		signedBy := func(k seal.PublicKey) bool {
			text, _, _ := get(t, h, "/.well-known/agent-manifest.json", "", "")
			_, err := seal.ReadDocument(text, hostDID, []seal.PublicKey{k}, time.Now())
			return err == nil
		}
		time.Sleep(time.Hour - time.Nanosecond)
		if !signedBy(keys[0]) || signedBy(keys[1]) {
			t.Error("the new key signs too early")
		}
		time.Sleep(time.Nanosecond)
		if signedBy(keys[0]) || !signedBy(keys[1]) {
			t.Error("the new key does not sign")
		}
	})
}

// TestHostDID: the host's own identifier has no path, and is found by its name.
func TestHostDID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "did:web:hive.example:agents", "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", "https://hive.example"} {
		if _, err := uamp.NewDocuments(uamp.Options{DID: id}); err == nil {
			t.Errorf("%s is taken", id)
		}
	}
}

// TestReplyByDocument (U-034, U-089): the answer to a partner without a url is sent, too, where
// the document of who has asked has an endpoint; no document is fetched for it alone.
func TestReplyByDocument(t *testing.T) {
	t.Parallel()
	messages := did.Service{ID: labDID + "#m", Type: "UAMPMessages", Endpoint: "https://lab.example/v1/messages"}
	elsewhere := messages
	elsewhere.Endpoint = "https://evil.example/v1/messages"
	for name, c := range map[string]struct {
		services []did.Service
		called   bool
		pinned   bool
		want     bool
	}{
		"an endpoint":       {[]did.Service{messages}, true, false, true},
		"none":              {nil, true, false, false},
		"at another host":   {[]did.Service{elsewhere}, true, false, false},
		"no host in ids":    {[]did.Service{messages}, false, false, false},
		"keys are pinned":   {[]did.Service{messages}, true, true, false},
		"nothing but a key": {nil, false, true, false},
	} {
		h := newHive(t, nil)
		seen := h.exposeAsks("calc")
		h.web.documents = map[string]did.Document{"https://lab.example/agents/x/did.json": {ID: labDID, Keys: []seal.PublicKey{h.own.Public()}, Services: c.services}}
		p := gateway.Partner{Name: "lab", Tenant: "default", IDs: []string{"did:web:lab.example:*"}, May: gateway.Rights{gateway.MayAsk}}
		if c.called {
			p.Client = http.DefaultClient
		}
		if c.pinned {
			p.Options = map[string]any{"keys": []string{string(h.own.Public().JWK())}}
		}
		h.rt.AddPartner(p)
		h.take(t, newAsk("calc", "2+2"))
		if got := <-seen; got.Reply != c.want {
			t.Errorf("%s: an answer is sent: %v", name, got.Reply)
		}
		if n := h.web.fetched.Load(); (n == 0) != c.pinned {
			t.Errorf("%s: %d fetches", name, n)
		}
	}
}
