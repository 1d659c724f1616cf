package config

import (
	"fmt"
	"iter"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"skep/host/internal/api/oidc"
)

// IACP has the keys that only [gateways.iacp] has.
type IACP struct {
	Listen               string
	Heartbeat, Idle, Ack time.Duration
}

// IACPPartner has the keys that only partners of [gateways.iacp] have.
type IACPPartner struct {
	// Role stands for a list of rights, empty for those in may.
	Role string
	Hub  bool
	// Sign is a private JSON Web Key, empty for messages without a signature.
	Sign Secret
	// Keys are JSON Web Keys, Tools and Capabilities names; empty for no such bound.
	Keys, Tools, Capabilities []string
}

var iacpProtocol = protocol{
	called: true, lacks: []string{"hold"}, rights: roleRights["admin"], maxBody: 16 * MiB,
	alone:   "its connections are one host's",
	keys:    func() Keys { return new(IACP) },
	partner: func() Keys { return new(IACPPartner) },
	check:   gatewayReader.checkIACP,
}

// roles are the document's (6.2), each with the rights of the one before and more; roleRights are
// their rights.
var (
	roles      = []string{"guest", "user", "admin"}
	roleRights = map[string][]string{
		"guest": {"ask"}, "user": {"ask", "tell", "tools"}, "admin": {"ask", "tell", "tools", "workflows", "broadcast", "relay"},
	}
)

// IACPSchemes are the schemes of the addresses of partners, each with the scheme of HTTP
// that is like it.
var IACPSchemes = map[string]string{"iacp": "http", "iacps": "https"}

// Settings are the keys of the gateway.
func (i *IACP) Settings() []Setting {
	return []Setting{
		text(&i.Listen, "listen", "Address of the connections, with TLS if there is a `[server.tls]`; port 0 for any, and of `HOST:9000-9999` the first free port.").withDefaultText(iacpListen).by(Fixed),
		span(&i.Heartbeat, "heartbeat", 30*time.Second, 100*time.Millisecond, time.Hour, "Time between two heartbeats on a connection."),
		span(&i.Idle, "idle", 90*time.Second, time.Second, day, "A connection over which nothing comes for this long is closed."),
		span(&i.Ack, "ack", 10*time.Second, 100*time.Millisecond, time.Hour, "How long a partner may take to acknowledge a message; then it is sent again."),
	}
}

// Settings are the keys of a partner.
func (p *IACPPartner) Settings() []Setting {
	return []Setting{
		choice(&p.Role, "role", "", roles, "Rights under a name, in place of `may`: `guest` may `ask`, `user` also `tell` and use `tools`, `admin` all that IaCP has.").by(Grant),
		boolean(&p.Hub, "hub", false, "It is a hub of agents: they and the members of other partners of its tenant reach each other, where both may `relay`.").by(Grant),
		field(&p.Keys, "keys", "list of keys", (*table).publicKeys, "JSON Web Keys, as in `file::mill.jwk`: its messages must be signed with one of them. Without it a signature is not looked at.").by(Subset),
		secretText(&p.Sign, "sign", "A private JSON Web Key of Ed25519 or P-256, as in `file::hive.jwk`, with which the messages to it are signed."),
		field(&p.Tools, "tools", "list of names", (*table).texts, "Tools for which its agents may ask; without it all.").by(Subset),
		field(&p.Capabilities, "capabilities", "list of names", (*table).texts, "Capabilities that its agents may register; without it all.").by(Subset),
	}
}

// iacpListen is the address of connections where the file has none.
const iacpListen = "127.0.0.1:9000"

// checkIACP looks at the address, and at the times of a silent connection.
func (r gatewayReader) checkIACP(g Gateway) {
	own := g.Protocol.(*IACP)
	if own.Listen == "" {
		own.Listen = iacpListen
	}
	at := r.t.child("listen")
	if _, port, err := net.SplitHostPort(own.Listen); err != nil || port == "" {
		r.d.atValue(at, fmt.Sprintf(`%s must be an address as in "127.0.0.1:9000"`, at.path))
	} else if _, _, isRange := portRange(port); strings.Contains(port, "-") && !isRange {
		r.d.atValue(at, fmt.Sprintf(`%s must have ports from a lower to a higher one, within 1 to 65535, as in "127.0.0.1:9000-9999"`, at.path))
	} else if r.server.TLS.Cert == "" && !isLoopback(own.Listen) && !r.server.PlainHTTP {
		r.d.atKey(at, at.path+" is reached from other machines and needs TLS: add [server.tls]")
	}
	if own.Idle <= own.Heartbeat {
		r.d.atKey(r.t.child("idle"), r.t.path+".idle must be longer than heartbeat: a peer that only sends heartbeats would be closed")
	}
}

// SigningKey is what signs the messages to a partner, empty for nothing.
func (p *IACPPartner) SigningKey() Secret { return p.Sign }

// iacpPartner gives a partner the rights of its role, and checks its signing key.
func (r gatewayReader) iacpPartner(t *table, p *Partner) {
	own, is := p.Protocol.(*IACPPartner)
	if is && own.Sign != "" {
		if err := oidc.CheckSigningKey(own.Sign.Reveal()); err != nil {
			r.d.atKey(t.child("sign"), t.child("sign").path+` must be a private JSON Web Key, as in "file::hive.jwk": `+err.Error())
		}
	}
	switch {
	case !is || own.Role == "":
	case t.has("may"):
		r.d.atKey(t.child("role"), t.child("role").path+" and may both name its rights: take one of the lines out")
	default:
		p.May = slices.Clone(roleRights[own.Role])
	}
}

// Addresses are where the gateway may listen: the first that is free counts.
func (i *IACP) Addresses() iter.Seq[string] {
	return func(yield func(string) bool) {
		host, port, err := net.SplitHostPort(i.Listen)
		first, last, isRange := portRange(port)
		if err != nil || !isRange {
			yield(i.Listen)
			return
		}
		for n := first; n <= last; n++ {
			if !yield(net.JoinHostPort(host, strconv.Itoa(n))) {
				return
			}
		}
	}
}

// portRange reads ports as in 9000-9999.
func portRange(port string) (first, last int, isRange bool) {
	from, to, _ := strings.Cut(port, "-")
	lower, err := strconv.ParseUint(from, 10, 16)
	higher, endErr := strconv.ParseUint(to, 10, 16)
	return int(lower), int(higher), err == nil && endErr == nil && 0 < lower && lower <= higher
}

// defaultLimits are the limits of the document (10.1).
func (*IACP) defaultLimits() (body Size, depth int) { return 16 * MiB, 10 }
