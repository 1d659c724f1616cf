package config

import (
	"fmt"
	"net"
	"time"
)

// IACP has the keys that only [gateways.iacp] has.
type IACP struct {
	Listen               string
	Heartbeat, Idle, Ack time.Duration
}

// IACPPartner has the keys that only partners of [gateways.iacp] have.
type IACPPartner struct {
	Hub bool
	// Keys are JSON Web Keys, Tools and Capabilities names; empty for no such bound.
	Keys, Tools, Capabilities []string
}

var iacpProtocol = protocol{
	called: true, lacks: []string{"hold"}, rights: []string{"ask", "tell", "tools", "workflows", "broadcast", "relay"}, maxBody: 16 * MiB,
	keys:    func() Keys { return new(IACP) },
	partner: func() Keys { return new(IACPPartner) },
	check:   gatewayReader.checkIACP,
}

// IACPSchemes are the schemes of the addresses of partners, each with the scheme of HTTP
// that is like it.
var IACPSchemes = map[string]string{"iacp": "http", "iacps": "https"}

// Settings are the keys of the gateway.
func (i *IACP) Settings() []Setting {
	return []Setting{
		text(&i.Listen, "listen", "Address of the connections, with TLS if there is a `[server.tls]`; port 0 for any.").withDefaultText(iacpListen).by(Fixed),
		span(&i.Heartbeat, "heartbeat", 30*time.Second, 100*time.Millisecond, time.Hour, "Time between two heartbeats on a connection."),
		span(&i.Idle, "idle", 90*time.Second, time.Second, day, "A connection over which nothing comes for this long is closed."),
		span(&i.Ack, "ack", 10*time.Second, 100*time.Millisecond, time.Hour, "How long a partner may take to acknowledge a message; then it is sent again."),
	}
}

// Settings are the keys of a partner.
func (p *IACPPartner) Settings() []Setting {
	return []Setting{
		boolean(&p.Hub, "hub", false, "It is a hub of agents: they and the members of other partners of its tenant reach each other, where both may `relay`.").by(Grant),
		field(&p.Keys, "keys", "list of keys", (*table).publicKeys, "JSON Web Keys, as in `file::mill.jwk`: its messages must be signed with one of them. Without it a signature is not looked at.").by(Subset),
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
	} else if r.server.TLS.Cert == "" && !isLoopback(own.Listen) && !r.server.PlainHTTP {
		r.d.atKey(at, at.path+" is reached from other machines and needs TLS: add [server.tls]")
	}
	if own.Idle <= own.Heartbeat {
		r.d.atKey(r.t.child("idle"), r.t.path+".idle must be longer than heartbeat: a peer that only sends heartbeats would be closed")
	}
}

// defaultLimits are the limits of the document (10.1).
func (*IACP) defaultLimits() (body Size, depth int) { return 16 * MiB, 10 }
