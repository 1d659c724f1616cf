package hub_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/hub"
	"skep/host/internal/gateway/uamp/seal"
)

// hosts answers requests to all hosts, and notes the addresses.
type hosts struct {
	documents map[string]func(http.ResponseWriter)
	asked     chan string
}

func (h hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked <- r.URL.String()
	w := httptest.NewRecorder()
	if serve, has := h.documents[r.URL.String()]; has {
		serve(w)
	} else {
		w.WriteHeader(http.StatusNotFound)
	}
	return w.Result(), nil
}

// serve adds a document.
func (h hosts) serve(at, kind, text string) {
	h.documents[at] = func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(text)) // it is a recorder
	}
}

// newKey is a key of a DID.
func newKey(t *testing.T, agent, seed string) seal.Key {
	t.Helper()
	k, err := seal.NewKey(agent+"#k", ed25519.NewKeyFromSeed([]byte(strings.Repeat(seed, ed25519.SeedSize))))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// payloadOf is the manifest of an agent, and its hash.
func payloadOf(t *testing.T, about string) (payload []byte, hash string) {
	t.Helper()
	payload, err := json.Marshal(envelope.Manifest{Agent: envelope.Version, Description: about, Intents: []string{"ask"}, BodyTypes: []string{"*/*"}, Auth: []string{"oauth2"}})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(payload)
	return payload, hex.EncodeToString(sum[:])
}

// add has an agent's host serve its manifest, signed by a key, and a document with another or
// the same.
func (h hosts) add(t *testing.T, agent, signer, shown string, made time.Time) envelope.Child {
	t.Helper()
	id, err := did.Parse(agent)
	if err != nil {
		t.Fatal(err)
	}
	payload, hash := payloadOf(t, "is "+agent)
	signed, err := newKey(t, agent, signer).SignDocument(payload, agent, made, made.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(did.Document{ID: agent, Keys: []seal.PublicKey{newKey(t, agent, shown).Public()}})
	if err != nil {
		t.Fatal(err)
	}
	h.serve(hub.ManifestURL(id), envelope.ManifestType, signed)
	h.serve(id.URL(), "application/did+json", string(document))
	return envelope.Child{Agent: agent, URL: "https://evil.example/manifest", SHA256: hash}
}

// TestRead (U-102, V-U15): an agent of a list counts if a key of its DID document has signed the
// manifest of which the list has the hash. Addresses in the list are not followed.
func TestRead(t *testing.T) {
	t.Parallel()
	const base = "https://hub.example"
	h := hosts{map[string]func(http.ResponseWriter){}, make(chan string, 100)}
	now := time.Now()
	agent := func(name string) string { return "did:web:lab.example:agents:" + name }
	changed := h.add(t, agent("changed"), "a", "a", now)
	changed.SHA256 = strings.Repeat("0", 64)
	good := h.add(t, agent("good"), "a", "a", now)
	children := []envelope.Child{
		good, good, good, h.add(t, "did:web:far.example:x", "b", "b", now), h.add(t, "did:web:hub.example", "a", "a", now), changed,
		h.add(t, agent("forged"), "e", "a", now), h.add(t, agent("old"), "a", "a", now.Add(-2*time.Hour)), h.add(t, agent("*"), "a", "a", now),
		{Agent: agent("none"), URL: "https://evil.example/manifest", SHA256: good.SHA256},
		{Agent: "did:key:" + newKey(t, "", "k").Public().Multikey(), URL: "https://evil.example/manifest", SHA256: good.SHA256},
		{Agent: "https://lab.example/agents/x", URL: "https://evil.example/manifest", SHA256: good.SHA256},
		{Agent: agent("short"), URL: "https://evil.example/manifest", SHA256: "00"},
	}
	list, err := json.Marshal(envelope.Hub{Version: envelope.HubVersion, Manifests: children})
	if err != nil {
		t.Fatal(err)
	}
	h.serve(base+hub.ListPath, "application/json", string(list))
	agents, err := hub.Read(t.Context(), &http.Client{Transport: h}, base)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		agent("good"): "", "did:web:far.example:x": "", agent("changed"): "another hash", agent("forged"): "not signed by its issuer", agent("old"): "expired", agent("*"): "has a star",
		agent("none"): "there is no manifest at https://lab.example/agents/none/agent-manifest.json", children[10].Agent: "no host", children[11].Agent: "neither a did:web nor a did:key",
		agent("short"): "no sha256 of 64",
	}
	if len(agents) != len(want)+1 || agents[1].Name != agent("good") || agents[1].Err == nil || !strings.Contains(agents[1].Err.Error(), "more than once") {
		t.Fatalf("%d agents, want %d and one that is listed again", len(agents), len(want))
	}
	for _, a := range slices.Delete(agents, 1, 2) {
		reason, known := want[a.Name]
		if !known || (a.Err == nil) != (reason == "") || a.Err != nil && !strings.Contains(a.Err.Error(), reason) {
			t.Errorf("%s: %v, want %q", a.Name, a.Err, reason)
		}
		if a.Err == nil && (len(a.Keys) != 1 || a.Manifest.Description != "is "+a.Name) || a.Err != nil && len(a.Keys) > 0 {
			t.Errorf("%s has %d keys, and the manifest %+v", a.Name, len(a.Keys), a.Manifest)
		}
	}
	close(h.asked)
	for at := range h.asked {
		if strings.Contains(at, "evil.example") || strings.Contains(at, "*") {
			t.Errorf("%s was read", at)
		}
	}
}

// TestReadRefused (U-102): a host without a list, with one that cannot be read, or with one that
// is too large.
func TestReadRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		text   string
		want   func(error) bool
	}{
		"none":      {404, "", func(err error) bool { return errors.Is(err, hub.ErrNoList) }},
		"away":      {503, "", func(err error) bool { return errors.As(err, new(*gateway.StatusError)) }},
		"moved":     {302, "", func(err error) bool { return errors.As(err, new(*gateway.StatusError)) }},
		"no list":   {200, "{}", func(err error) bool { return strings.Contains(err.Error(), "no hub list") }},
		"too large": {200, `{"uamp_hub":"1.0","x":"` + strings.Repeat("a", 1<<20) + `"}`, func(err error) bool { return strings.Contains(err.Error(), "more than 1048576 bytes") }},
	} {
		h := hosts{map[string]func(http.ResponseWriter){"https://hub.example" + hub.ListPath: func(w http.ResponseWriter) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.text)) // it is a recorder
		}}, make(chan string, 1)}
		agents, err := hub.Read(t.Context(), &http.Client{Transport: h}, "https://hub.example")
		if err == nil || !c.want(err) || len(agents) > 0 {
			t.Errorf("%s: %v, %v", name, agents, err)
		}
	}
}

// TestFetchSigned (U-101): what is no signed manifest is none, and one that is too large is an
// error.
func TestFetchSigned(t *testing.T) {
	t.Parallel()
	h := hosts{map[string]func(http.ResponseWriter){}, make(chan string, 10)}
	h.serve("https://a.example/m", envelope.ManifestType+"; charset=utf-8", "a.b.c")
	h.serve("https://a.example/html", "text/html", "a.b.c")
	h.serve("https://a.example/large", envelope.ManifestType, strings.Repeat("a", 128<<10+1))
	var got []string
	for _, path := range []string{"m", "html", "none"} {
		text, err := hub.FetchSigned(t.Context(), &http.Client{Transport: h}, "https://a.example/"+path)
		if err != nil {
			t.Error(err)
		}
		got = append(got, text)
	}
	if want := []string{"a.b.c", "", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := hub.FetchSigned(t.Context(), &http.Client{Transport: h}, "https://a.example/large"); err == nil || !strings.Contains(err.Error(), "more than 131072 bytes") {
		t.Errorf("a large one: %v", err)
	}
}
