package config

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"skep/host/internal/api/listener"
	"skep/spec/mail"
)

// Partner is one [gateways.NAME.partners.NAME] table: another party that a gateway
// knows. Agents write to it as NAME@PARTNER.
type Partner struct {
	Name    string
	Gateway string
	URL     string   // empty if it is not called
	IDs     []string // patterns of its agents' ids
	Agents  []string // exposed agents that it may see; empty is all
	Tenant  string
	// AuthToken, APIKey and HMACKey are shown to it; CA, Certificate and Key are files of
	// calls with TLS. TLS is what they hold, nil without them.
	AuthToken, APIKey, HMACKey Secret
	CA, Certificate, Key       string
	TLS                        *tls.Config
	// Certificates are URIs and DNS names in its own certificate.
	Certificates    []string
	May             []string
	Timeout, GiveUp time.Duration
	AllowPrivate    bool
	RetryInDoubt    bool
	// Protocol has the keys that only its gateway has, nil if there are none.
	Protocol Keys
	Pos      Pos
}

// KindURL is the [Setting].Kind of an address that is called.
const KindURL = "URL"

// rights are what a partner may be allowed.
var rights = []string{"ask", "tell", "tools", "register", "contexts", "workflows", "broadcast", "relay"}

// Settings are the keys of the table, the keys of the protocol last.
func (p *Partner) Settings() []Setting {
	if p.Protocol == nil {
		return p.common()
	}
	return append(p.common(), p.Protocol.Settings()...)
}

// common are the keys that every partner has.
func (p *Partner) common() []Setting {
	return []Setting{
		field(&p.URL, "url", KindURL, p.readURL, "Where it is called; for IaCP `iacp://HOST:PORT`, or `iacps://HOST:PORT` with TLS.").by(Fixed),
		field(&p.IDs, "ids", "list of ids", (*table).patterns, "Ids of its agents; `*` is any text. Messages of others are refused.").by(Grant),
		field(&p.Agents, "agents", "list of agents", (*table).texts, "Exposed agents that it may see; without it all of them.").by(Subset),
		field(&p.Tenant, "tenant", "string", (*table).partnerTenant, "Whose agents it reaches, and who pays for it.").withDefaultText(mail.DefaultTenant).by(Fixed),
		headerSecret(&p.AuthToken, "auth_token", "Bearer token that it is shown."),
		headerSecret(&p.APIKey, "api_key", "Key that it is shown, in the header `X-API-Key`."),
		field(&p.HMACKey, "hmac_key", "string", (*table).sharedKey, "Shared key with which messages are signed both ways; one without a signature is refused."),
		field(&p.CA, "ca", "path", (*table).usedFile, "Authorities of its certificate where it is called with TLS, in PEM; without it, the system's."),
		field(&p.Certificate, "certificate", "path", (*table).usedFile, "The certificate that it is shown, with its chain, in PEM."),
		field(&p.Key, "key", "path", (*table).usedFile, "The private key of `certificate`, in PEM."),
		field(&p.Certificates, "certificates", "list of names", (*table).certificateNames, "URIs and DNS names: a caller with a certificate for one of them is this partner; needs `client_ca` in `[server.tls]`.").by(Grant),
		field(&p.May, "may", "list of rights", (*table).rights, "What it may do: "+listOf(rights)+".").withDefaultText(`["ask"]`).by(Grant),
		span(&p.Timeout, "timeout", time.Minute, time.Second, day, "How long one answer of it may take."),
		span(&p.GiveUp, "give_up", giveUpOf(p.Gateway), time.Second, 30*day, "How long it is tried while it does not answer; 5m over UAMP, where what is in doubt is sent again after `timeout`."),
		boolean(&p.AllowPrivate, "allow_private", false, "It may be at a private or loopback address, by its name too, and over http.").by(Grant),
		boolean(&p.RetryInDoubt, "retry_in_doubt", true, "A message whose answer was lost is sent again, under the same id.").by(Grant),
	}
}

// readURL reads where the partner is called.
func (p *Partner) readURL(t *table, key string) string {
	if v, ok := t.value(key); ok && p.Gateway == "iacp" {
		return t.socketURL(v, IACPSchemes)
	}
	return t.url(key)
}

// giveUpOf is how long the partners of a gateway are tried by default. An answer over UAMP is
// a stream that is read for as long as timeout: a repeat after it needs more.
func giveUpOf(gateway string) time.Duration {
	if gateway == "uamp" {
		return 5 * time.Minute
	}
	return 30 * time.Second
}

// rights reads what a partner may do.
func (t *table) rights(key string) []string {
	if !t.has(key) {
		return []string{rights[0]}
	}
	return t.among(key, "right", rights)
}

// sharedKey reads a secret that proves messages. An empty one would let them in unproven.
func (t *table) sharedKey(key string) Secret {
	if v, ok := t.value(key); ok && v.text == "" {
		t.d.atValue(v.location, v.path+" is empty, and no message would have to be signed; give the key, or remove the line")
		return ""
	}
	return t.secret(key)
}

// partnerTenant reads a tenant; [gatewayReader.partner] checks it.
func (t *table) partnerTenant(key string) string { return t.text(key, mail.DefaultTenant) }

func (r gatewayReader) partner(gateway, name string, t *table) Partner {
	p := Partner{Name: name, Gateway: gateway, Pos: r.d.pos(t.location)}
	if r.kind.partner != nil {
		p.Protocol = r.kind.partner()
	}
	r.d.checkRealm(t.keyAsValue(name), "a partner")
	if taken, is := r.realms[name]; is {
		r.d.atKey(t.location, fmt.Sprintf("the name %q is that of %s as well; agents write to both as NAME@%s", name, taken, name))
	}
	r.realms[name] = "a partner of " + gateway
	t.read(p.Settings())
	if slices.Contains(r.kind.lacks, "ids") {
		t.needs("gateways.ids", "ids")
	}
	if !r.kind.signs {
		t.needs("gateways.hmac_key", "hmac_key")
	}
	if v, ok := t.value("tenant"); ok && !slices.Contains(r.tenants, v.text) {
		r.d.atValue(v.location, fmt.Sprintf("unknown tenant %s; add [tenants.NAME], or leave the line out for tenant %q", v.shown, mail.DefaultTenant)).near(v.text, r.tenants)
	}
	r.iacpPartner(t, &p)
	r.checkRights(t, gateway)
	r.checkCalls(t, p)
	r.partnerTLS(t, &p)
	t.refuseUnknown()
	return p
}

// checkRights warns of rights for which no message of the protocol asks.
func (r gatewayReader) checkRights(t *table, gateway string) {
	for _, v := range t.list("may") {
		if r.kind.rights != nil && slices.Contains(rights, v.text) && !slices.Contains(r.kind.rights, v.text) {
			r.d.warn(v.location, fmt.Sprintf("%s has no effect: no message of %s asks for this right", v.path, gateway))
		}
	}
}

// checkCalls looks at the addresses of a partner: its url, and what its protocol adds.
func (r gatewayReader) checkCalls(t *table, p Partner) {
	if !r.kind.called && t.has("url") {
		r.d.atKey(t.child("url"), fmt.Sprintf("%s: what calls the gateway %s is not called by it; leave the line out", t.child("url").path, p.Gateway))
	}
	for _, s := range p.Settings() {
		if address, isText := s.Value().(string); isText && s.Kind == KindURL && !p.AllowPrivate {
			r.d.checkAddress(t, s.Key, address)
		}
	}
}

// partnerTLS reads the files for calls of a partner. One that is missing has its fault.
func (r gatewayReader) partnerTLS(t *table, p *Partner) {
	for key, path := range map[string]string{"ca": p.CA, "certificate": p.Certificate, "key": p.Key} {
		if t.has(key) && path == "" {
			return
		}
	}
	var err error
	p.TLS, err = listener.ClientFiles{CA: p.CA, Cert: p.Certificate, Key: p.Key}.Load(r.d.opt.Now)
	switch {
	case err != nil:
		r.d.atKey(t.location, fmt.Sprintf("%s: %s", t.path, err))
	case p.Key != "":
		r.d.checkKeyFile(t.child("key"), p.Key)
	}
}

// checkCertificates makes sure that a certificate shows one partner, and can be asked for.
func (r gatewayReader) checkCertificates(g Gateway) {
	for _, p := range g.Partners {
		at := r.t.child("partners").child(p.Name).child("certificates")
		if len(p.Certificates) > 0 && r.server.TLS.ClientCA == "" {
			r.d.atKey(at, at.path+" needs client_ca in [server.tls], which says whose certificates callers show")
		}
		for i, name := range p.Certificates {
			if other := r.certificates[name]; other != "" {
				r.d.atValue(at.elem(i), fmt.Sprintf("%s: %q is that of the partner %q as well", at.elem(i).path, name, other))
			}
			r.certificates[name] = p.Name
		}
	}
}

// certificateNames reads names in client certificates, in the form in which they are
// compared: DNS names have no case.
func (t *table) certificateNames(key string) []string {
	items := t.list(key)
	for i, v := range items {
		u, err := url.Parse(v.text)
		isURI := err == nil && u.Scheme != "" && (u.Host != "" || u.Opaque != "")
		if !isURI && (v.text == "" || strings.ContainsAny(v.text, ":/ *\t")) || strings.Contains(v.text, "*") {
			t.d.atValue(v.location, v.path+` must be a URI as in "spiffe://acme/agents", or a DNS name; names match whole`)
		}
		if !isURI {
			items[i].text = strings.ToLower(v.text)
		}
	}
	return textsOf(items)
}

// checkRealm reports a name that no other swarm can have here: one that is no name, or
// one of those that admitted strangers get.
func (d *decoder) checkRealm(v value, what string) {
	d.checkName(v, what, true)
	if gateway, _, has := strings.Cut(v.text, "+"); has && slices.Contains(d.gatewayNames(), gateway) {
		d.atValue(v.location, fmt.Sprintf("the name of %s must not begin with %q: names with it are of strangers that the gateway %s admits", what, gateway+"+", gateway))
	}
}
