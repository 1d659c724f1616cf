package uamp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/hub"
	"skep/host/internal/gateway/wire"
)

// Options are the settings of [gateways.uamp], and what the host lends the gateway.
type Options struct {
	Runtime gateway.Runtime
	// DID is the host's, a did:web without a path.
	DID  string
	Keys Keys
	// MaxBody bounds an envelope, in bytes; RatePerHour the envelopes of one sender, 0 for
	// no limit.
	MaxBody     int64
	RatePerHour int
	// MaxDepth bounds the levels of its JSON. Default 64.
	MaxDepth int
	// Strict refuses what the document leaves open.
	Strict bool
	// Certificates is set where callers may show one in place of a token.
	Certificates bool
	// RequireToken refuses envelopes without a capability token.
	RequireToken bool
	// ClockSkew is how far the time of a new envelope may be from the time here. Default
	// 5 min.
	ClockSkew time.Duration
	// MaxWindow bounds the deltas of one answer. Default 1024.
	MaxWindow int
	// Sessions bounds the WebSockets and gRPC streams of one realm. Default 256.
	Sessions int
	// Pace bounds a tenant's messages on their way over WebSockets. Default: each is whole
	// within a minute.
	Pace func(tenant string) wire.Pace
	// Subscriptions bounds the subscriptions of one realm that have a ttl. Default 256.
	Subscriptions int
	// Keep is how long the stream_id of an envelope is known. Default a day.
	Keep time.Duration
	// Fetch gets DID documents: it reaches public hosts alone. Nil fetches none.
	Fetch http.RoundTripper
	// Tenants are those whose subscriptions go on after a restart.
	Tenants []string
	// Since is when the host has begun to serve its agents as they are.
	Since time.Time
	// Log gets what is wrong with the host. Default: nothing is logged.
	Log  *slog.Logger
	host did.ID
}

// Paths of the public documents (U-033, U-100–U-102).
const (
	hostDocumentPath = "/.well-known/did.json"
	hostManifestPath = "/.well-known/agent-manifest.json"
	agentsPath       = "/" + agentsPart + "/"
)

// messagesPath is where envelopes are sent to.
const messagesPath = "/v1/messages"

// How long what is served may be kept, and a signed manifest counts.
const (
	documentAge  = 5 * time.Minute
	manifestLife = 24 * time.Hour
)

// Documents serves what others read before they send an envelope.
type Documents struct{ Options }

// NewDocuments returns the documents of a host.
func NewDocuments(o Options) (*Documents, error) {
	id, err := did.Parse(o.DID)
	if err != nil || id.Host() == "" || len(id.Path()) > 0 {
		return nil, fmt.Errorf("%q is not the did:web of a host", o.DID)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.host = id
	return &Documents{o}, nil
}

// Mounts are the routes of the documents.
func (d *Documents) Mounts() []gateway.Mount {
	get := func(pattern string, serve http.HandlerFunc) gateway.Mount {
		return gateway.Mount{Method: http.MethodGet, Pattern: pattern, Handler: serve}
	}
	return []gateway.Mount{
		get(hostDocumentPath, func(w http.ResponseWriter, _ *http.Request) { d.serveDocument(w, address{}) }),
		get(hostManifestPath, func(w http.ResponseWriter, r *http.Request) { d.serveManifest(w, r, address{}) }),
		get(hub.ListPath, d.serveHub),
		get(agentsPath+"*rest", d.serveAgent),
	}
}

// serveAgent serves the documents of one agent: /agents/SWARM/AGENT/NAME.
func (d *Documents) serveAgent(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, agentsPath), "/")
	if len(parts) != 3 {
		http.NotFound(w, r)
		return
	}
	switch a := (address{parts[0], parts[1]}); parts[2] {
	case hub.DocumentName:
		d.serveDocument(w, a)
	case hub.ManifestName:
		d.serveManifest(w, r, a)
	default:
		http.NotFound(w, r)
	}
}

// serveDocument serves a DID document. All agents sign with the host's key, so any name
// has one: who reads it learns nothing of which agents there are.
func (d *Documents) serveDocument(w http.ResponseWriter, a address) {
	id, ok := d.didOf(a)
	if !ok {
		http.Error(w, "Not Found", http.StatusNotFound)
		return
	}
	keys, err := d.Keys.published(id)
	if err != nil {
		d.fail(w, err)
		return
	}
	text, err := json.Marshal(did.Document{ID: id, Keys: keys, Services: []did.Service{
		{ID: id + "#messages", Type: serviceMessages, Endpoint: d.base() + messagesPath},
		{ID: id + "#socket", Type: serviceSocket, Endpoint: "wss://" + d.host.Host() + socketPath},
		{ID: id + "#grpc", Type: serviceGRPC, Endpoint: d.base()},
		{ID: id + "#manifest", Type: serviceManifest, Endpoint: d.manifestURL(a)},
	}})
	if err != nil {
		d.fail(w, err)
		return
	}
	write(w, "application/did+json", text)
}

// base is the address of the host.
func (d *Documents) base() string { return "https://" + d.host.Host() }

// manifestURL is where the manifest of an address is.
func (d *Documents) manifestURL(a address) string {
	if a == (address{}) {
		return d.base() + hostManifestPath
	}
	return d.base() + agentsPath + a.swarm + "/" + a.agent + "/" + hub.ManifestName
}

// serveManifest serves the manifest of the host or of an agent that the reader may see.
func (d *Documents) serveManifest(w http.ResponseWriter, r *http.Request, a address) {
	for _, known := range d.addresses(r) {
		if known.address == a {
			d.writeSigned(w, known.did, d.manifest(known))
			return
		}
	}
	http.NotFound(w, r)
}

// described is an address with its DID and what it is for.
type described struct {
	address
	did, description string
}

// addresses are the host, and the agents that the reader may see: who shows a credential
// sees what it shows.
func (d *Documents) addresses(r *http.Request) []described {
	var c gateway.Caller
	if r.Header.Get("Authorization") != "" {
		if who, err := d.Runtime.Identify(r); err == nil {
			c = who
		}
	}
	list := []described{{address{}, d.host.String(), "Agents of " + d.host.Host()}}
	for _, agent := range d.Runtime.ExposedAgents(c) {
		a := address{agent.Swarm, agent.Name}
		if id, ok := d.didOf(a); ok {
			list = append(list, described{a, id, agent.Description})
		}
	}
	return list
}

// bodyTypes are what envelopes may have: text goes to the agent as it is, anything else as
// a blob.
var bodyTypes = []string{"text/plain", "text/markdown", "application/json", "*/*"}

// manifest is what an agent takes, which is the same for all of them (U-101).
func (d *Documents) manifest(of described) envelope.Manifest {
	m := envelope.Manifest{
		Agent: envelope.Version, Description: of.description, BodyTypes: bodyTypes, Auth: []string{envelope.AuthOAuth2},
		Limits: envelope.ManifestLimits{MaxBodyKB: int(d.MaxBody >> 10), RateLPH: d.RatePerHour},
	}
	for _, intent := range envelope.Intents() {
		m.Intents = append(m.Intents, string(intent))
	}
	if d.Certificates {
		m.Auth = append(m.Auth, envelope.AuthMTLS)
	}
	return m
}

// serveHub lists the manifests that the reader may see, signed for who asks for that form
// (U-102).
func (d *Documents) serveHub(w http.ResponseWriter, r *http.Request) {
	list := envelope.Hub{
		Version: envelope.HubVersion, Anchors: []envelope.Anchor{{Type: "did", Value: d.host.String()}}, Updated: d.Since.UTC().Truncate(time.Second),
	}
	for _, known := range d.addresses(r) {
		payload, err := json.Marshal(d.manifest(known))
		if err != nil {
			d.fail(w, err)
			return
		}
		sum := sha256.Sum256(payload)
		list.Manifests = append(list.Manifests, envelope.Child{Agent: known.did, URL: d.manifestURL(known.address), SHA256: hex.EncodeToString(sum[:])})
	}
	w.Header().Set("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), envelope.ManifestType) {
		d.writeSigned(w, d.host.String(), list)
		return
	}
	text, err := json.Marshal(list)
	if err != nil {
		d.fail(w, err)
		return
	}
	w.Header().Add("Vary", "Authorization")
	write(w, "application/json", text)
}

// writeSigned serves a payload that is signed for a DID.
func (d *Documents) writeSigned(w http.ResponseWriter, of string, payload any) {
	signed, err := d.signDocument(of, payload)
	if err != nil {
		d.fail(w, err)
		return
	}
	w.Header().Add("Vary", "Authorization")
	write(w, envelope.ManifestType, []byte(signed))
}

// signDocument signs a payload for a DID.
func (d *Documents) signDocument(of string, payload any) (string, error) {
	now := time.Now()
	text, err := json.Marshal(payload)
	if err != nil {
		return "", err
	}
	key, err := d.Keys.signer(of, now)
	if err != nil {
		return "", err
	}
	return key.SignDocument(text, of, now, now.Add(manifestLife))
}

func (d *Documents) fail(w http.ResponseWriter, err error) {
	d.Log.Error("uamp: a document cannot be made", "error", err)
	http.Error(w, "the document cannot be made", http.StatusInternalServerError)
}

func write(w http.ResponseWriter, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", int(documentAge/time.Second)))
	_, _ = w.Write(text) // the reader may have left
}
