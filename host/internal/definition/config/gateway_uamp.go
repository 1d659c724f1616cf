package config

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/seal"
)

// UAMP has the keys that only [gateways.uamp] has.
type UAMP struct {
	DID             string // a did:web without a path
	RequireCapToken bool
	ClockSkew       time.Duration
	MaxWindow       int
	Subscriptions   int
	HTTP3           bool
}

// UAMPPartner has the keys that only partners of [gateways.uamp] have.
type UAMPPartner struct {
	Keys     []string // JSON Web Keys; empty where its DID documents have them
	Binding  string   // by which its url is called
	CapToken Secret   // empty for tokens of the host's own
	OAuth    OAuth
}

// Bindings of a [UAMPPartner].
const (
	BindingHTTP   = "http"
	BindingSocket = "websocket"
	BindingGRPC   = "grpc"
	BindingHTTP3  = "http3"
)

var bindings = []string{BindingHTTP, BindingSocket, BindingGRPC, BindingHTTP3}

var uampProtocol = protocol{
	called: true, lacks: []string{"hold"}, rights: []string{"ask", "tell", "broadcast"}, maxBody: 16 * MiB,
	alone:   "its keys, subscriptions and open connections are one host's",
	keys:    func() Keys { return new(UAMP) },
	partner: func() Keys { return new(UAMPPartner) },
	check:   gatewayReader.checkUAMP,
}

// Settings are the keys of the gateway.
func (u *UAMP) Settings() []Setting {
	return []Setting{
		text(&u.DID, "did", "The host's DID, below which its agents have theirs, as `did:web:hive.example`.").withDefaultText("that of the host in `public_url`").by(Fixed),
		boolean(&u.RequireCapToken, "require_cap_token", false, "An envelope without a capability token is refused."),
		span(&u.ClockSkew, "clock_skew", 5*time.Minute, time.Second, day, "How far the time of a new envelope may be from the time here."),
		boolean(&u.HTTP3, "http3", false, "The public listener's requests are also served over HTTP/3, at its port of UDP."),
		count(&u.MaxWindow, "max_window", 1024, 1, 1_000_000, "Deltas of a stream that one answer has; a reader goes on with another request."),
		count(&u.Subscriptions, "subscriptions", 256, 1, 9000, "Subscriptions with a `ttl` that the agents of one realm have at ours at once."),
	}
}

// Settings are the keys of a partner.
func (p *UAMPPartner) Settings() []Setting {
	return []Setting{
		field(&p.Keys, "keys", "list of keys", (*table).envelopeKeys, "JSON Web Keys of Ed25519 or P-256, as in `file::lab.jwk`: its envelopes must be signed with one of them. Without it, with a key of the sender's DID document.").by(Subset),
		choice(&p.Binding, "binding", BindingHTTP, bindings, "How its `url` is called. A partner without `url` is called as the DID document of the agent says that is written to.").by(Fixed),
		secretText(&p.CapToken, "cap_token", "A capability token that it has given, as in `file::lab.token`: each envelope to it has this one, in place of one that the host makes."),
		section("oauth", p.OAuth.Settings(), "Where the bearer token comes from that it is shown, in place of `auth_token`."),
	}
}

// TokenEndpoint is where the partner's bearer token comes from.
func (p *UAMPPartner) TokenEndpoint() OAuth { return p.OAuth }

// HTTP3 reports whether the url of a partner is called over HTTP/3 alone.
func (p *UAMPPartner) HTTP3(of Partner) bool { return of.URL != "" && p.Binding == BindingHTTP3 }

// Hosts are the addresses of the hosts of a partner's DIDs where it has no url: their documents
// say by which binding they are called.
func (p *UAMPPartner) Hosts(of Partner) (list []string) {
	if of.URL != "" {
		return nil
	}
	for _, id := range of.IDs {
		host, isWeb := strings.CutPrefix(id, didWeb)
		host, _, _ = strings.Cut(host, ":")
		if isWeb && host != "" && strings.Trim(strings.Replace(host, "%3A", "", 1), didHost) == "" {
			list = append(list, "https://"+strings.Replace(host, "%3A", ":", 1))
		}
	}
	return list
}

// didWeb begins the DIDs of hosts.
const didWeb = "did:web:"

// checkUAMP makes sure that callers reach the gateway by TLS 1.3, and that its DID leads to
// this host.
func (r gatewayReader) checkUAMP(g Gateway) {
	own, at := g.Protocol.(*UAMP), r.t.child("did")
	r.checkTimes(g, own.ClockSkew)
	switch tls := r.server.TLS; {
	case tls.TLS12:
		r.d.atKey(r.t.location, r.t.path+" needs TLS 1.3: take min_version out of [server.tls]")
	case tls.Cert == "" && !isLoopback(r.server.Listen):
		r.d.atKey(r.t.location, r.t.path+" needs TLS: add [server.tls]")
	}
	if at := r.t.child("http3"); own.HTTP3 && r.server.TLS.Cert == "" {
		r.d.atKey(at, at.path+" needs TLS on a loopback address, too: add [server.tls]")
	}
	derived := didOfURL(r.server.PublicURL)
	id, err := did.Parse(cmp.Or(own.DID, derived))
	switch {
	case own.DID == "" && derived == "":
		r.d.atKey(r.t.location, r.t.path+" needs a DID: add public_url to [server], or did")
	case own.DID == "" && err != nil:
		r.d.atKey(r.t.location, fmt.Sprintf("%s needs a DID, and %s is none: %v; add did", r.t.path, derived, err))
	case own.DID == "":
		own.DID = derived
	case err != nil:
		r.d.atValue(at, fmt.Sprintf(`%s must be the did:web of a host, as in "did:web:hive.example": %v`, at.path, err))
	case id.Host() == "" || len(id.Path()) > 0:
		r.d.atValue(at, at.path+` must be the did:web of a host, as in "did:web:hive.example"`)
	case derived != "" && own.DID != derived:
		r.d.atValue(at, fmt.Sprintf("%s is %s and public_url %s: nobody would find its document", at.path, own.DID, r.server.PublicURL))
	}
}

// checkTimes makes sure that a repeat is known for as long as its time counts, and warns of
// partners to which what is in doubt is not sent again.
func (r gatewayReader) checkTimes(g Gateway, skew time.Duration) {
	if at := r.t.child("keep"); g.Keep < 2*skew {
		r.d.atKey(at, fmt.Sprintf("%s is %s and clock_skew %s: keep must be at least twice as long, or an envelope that is forgotten counts again", at.path, durations.print(int64(g.Keep)), durations.print(int64(skew))))
	}
	for _, p := range g.Partners {
		if own, is := p.Protocol.(*UAMPPartner); is {
			r.checkOAuth(p, own.OAuth)
			r.checkIDs(p, own.Keys)
			r.checkURL(p, own.Binding)
			r.checkCapToken(p, own.CapToken)
		}
		if own, at := p.Protocol.(*UAMPPartner), r.t.child("partners").child(p.Name).child("binding"); own.HTTP3(p) && !strings.HasPrefix(p.URL, "https://") {
			r.d.atValue(at, fmt.Sprintf("%s is %q, and url is no https URL: HTTP/3 has TLS always", at.path, own.Binding))
		}
		if at := r.t.child("partners").child(p.Name).child("give_up"); p.RetryInDoubt && p.GiveUp < p.Timeout {
			r.d.warn(at, fmt.Sprintf("%s is shorter than timeout: an envelope whose answer was lost is not sent again", at.path))
		}
	}
}

// checkURL refuses the url of one of a partner's endpoints: it is the address before them. It warns of a
// binding that calls nothing.
func (r gatewayReader) checkURL(p Partner, binding string) {
	t := r.t.child("partners").child(p.Name)
	for _, path := range []string{"/v1/messages", "/uamp/1/ws"} {
		if base, has := strings.CutSuffix(strings.TrimSuffix(p.URL, "/"), path); has {
			r.d.atValue(t.child("url"), fmt.Sprintf("%s is the address before %s: write %q", t.child("url").path, path, base))
		}
	}
	if p.URL == "" && binding != BindingHTTP {
		r.d.warn(t.child("binding"), t.child("binding").path+" is how url is called, and there is none: the DID documents of its agents say how they are called")
	}
}

// checkIDs refuses ids of a partner that cannot be resolved where its keys are not pinned. Of one
// with a star the host of a did:web is looked at. It warns of ids that no sender has.
func (r gatewayReader) checkIDs(p Partner, pinned []string) {
	at := r.t.child("partners").child(p.Name).child("ids")
	if len(p.IDs) == 0 {
		r.d.warn(r.t.child("partners").child(p.Name), fmt.Sprintf(`%s has no ids, so that no sender is its: add ids = ["did:web:HOST:*"]`, r.t.child("partners").child(p.Name).path))
	}
	for i, id := range p.IDs {
		if begin, _, hasStar := strings.Cut(id, "*"); !strings.HasPrefix(begin, "did:") && !(hasStar && strings.HasPrefix("did:", begin)) {
			r.d.warn(at.elem(i), fmt.Sprintf("%s is %q, and no DID: senders have DIDs, as in \"did:web:lab.example:*\"", at.elem(i).path, id))
		}
		if host := strings.SplitN(id, ":", 4); strings.Contains(id, "*") && strings.HasPrefix(id, didWeb) {
			id = strings.Join(host[:3], ":")
		}
		_, err := did.Parse(id)
		if err != nil && len(pinned) == 0 && strings.HasPrefix(id, "did:") && !strings.Contains(id, "*") {
			r.d.atValue(at.elem(i), fmt.Sprintf("%s: %v", at.elem(i).path, err))
		}
	}
}

// envelopeKeys reads public keys with which envelopes are verified.
func (t *table) envelopeKeys(key string) []string {
	items := t.list(key)
	for _, v := range items {
		if _, err := seal.ParseJWK("", []byte(v.text)); err != nil {
			t.d.atValue(v.location, fmt.Sprintf(`%s must be a public JSON Web Key, as in "file::lab.jwk": %v`, v.path, err))
		}
	}
	return textsOf(items)
}

// didHost are the characters of a host's name.
const didHost = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-."

// didOfURL is the DID of the host of an address, empty for none. Its port is a part of it.
func didOfURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" {
		return ""
	}
	return didWeb + strings.ReplaceAll(u.Host, ":", "%3A")
}
