package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// AMP has the keys that only [gateways.amp] has.
type AMP struct {
	Token    string
	Lease    time.Duration
	RabbitMQ RabbitMQ
	Kafka    Kafka
}

// AMPPartner has the keys that only partners of [gateways.amp] have.
type AMPPartner struct {
	HMACAlone bool
	Queues    bool
	Join      bool
	JoinToken Secret
	Binding   string // by which its url is called
}

var ampProtocol = protocol{
	called: true, signs: true, rights: []string{"ask", "tell", "broadcast", "register", "contexts", "relay"}, maxBody: 16 * MiB,
	alone:   "the answers that it waits for, notices and open connections are one host's",
	keys:    func() Keys { return new(AMP) },
	partner: func() Keys { return new(AMPPartner) },
	check:   gatewayReader.checkAMP,
}

// Settings are the keys of the gateway.
func (a *AMP) Settings() []Setting {
	return []Setting{
		choice(&a.Token, "token", "AMP", []string{"AMP", "AIP"}, "The name of the protocol in messages to partners; an answer has the name of its question."),
		span(&a.Lease, "lease", 5*time.Minute, time.Second, day, "How long the registration of a partner's agent counts without a heartbeat."),
		section("rabbitmq", a.RabbitMQ.Settings(), "A broker of AMQP 0-9-1, over which partners with `queues` send and get messages."),
		section("kafka", a.Kafka.Settings(), "A cluster of Kafka, over which partners with `queues` send and get messages, instead of RabbitMQ."),
	}
}

// Settings are the keys of a partner.
func (p *AMPPartner) Settings() []Setting {
	return []Setting{
		boolean(&p.HMACAlone, "hmac_alone", false, "A signature with `hmac_key` proves the partner without another credential.").by(Grant),
		choice(&p.Binding, bindingKey, BindingHTTP, []string{BindingHTTP, BindingGRPC}, "How its `url` is called: by POST, or by the gRPC service at that host.").by(Fixed),
		boolean(&p.Queues, QueuesKey, false, "Its messages go over the broker of `rabbitmq` or `kafka`; needs `hmac_key`, which proves them there.").by(Grant),
		boolean(&p.Join, joinKey, false, "Exposed agents that it may see register in its mesh, at its `url`; needs `public_url` in `[server]`.").by(Grant),
		secretText(&p.JoinToken, joinTokenKey, "What its mesh is told to show where it calls these agents: the key of it in `[[auth.keys]]`."),
	}
}

// CallsGRPC reports that agents of the partner may have gRPC addresses, whatever its own binding is.
func (p *AMPPartner) CallsGRPC() bool { return true }

// The keys of [AMPPartner].Binding, Join and JoinToken.
const (
	bindingKey   = "binding"
	joinKey      = "join"
	joinTokenKey = "join_token"
)

// minHMACKey is the length of the shortest shared key, in bytes.
const minHMACKey = 16

// checkAMP makes sure that shared keys cannot be guessed, and that what needs one has one.
func (r gatewayReader) checkAMP(g Gateway) {
	r.checkQueues(g)
	for _, p := range g.Partners {
		at := r.t.child("partners").child(p.Name)
		own := p.Protocol.(*AMPPartner)
		switch key := p.HMACKey.Reveal(); {
		case key != "" && len(key) < minHMACKey:
			r.d.atKey(at.child("hmac_key"), fmt.Sprintf("%s must have at least %d bytes", at.child("hmac_key").path, minHMACKey))
		case key == "" && own.HMACAlone:
			r.d.atKey(at.child("hmac_alone"), fmt.Sprintf("%s needs hmac_key in the same table", at.child("hmac_alone").path))
		}
		r.checkBinding(at, p, *own)
		r.checkJoin(at, p, *own)
	}
}

// checkBinding makes sure that a partner that is called over gRPC has the address of a host.
func (r gatewayReader) checkBinding(table location, p Partner, own AMPPartner) {
	if own.Binding != BindingGRPC {
		return
	}
	at, of := table.child(bindingKey), table.child("url")
	switch u, err := url.Parse(p.URL); {
	case own.Queues:
		r.d.atValue(at, at.path+` is "grpc" and queues = true: its messages go over the broker; remove one of the lines`)
	case p.URL == "":
		r.d.atValue(at, at.path+` is "grpc", and needs url in the same table: the address of the host that serves gRPC`)
	case err == nil && (strings.Trim(u.Path, "/") != "" || u.RawQuery != ""):
		r.d.atValue(of, fmt.Sprintf(`%s has a path, and binding is "grpc": write the address of the host alone, "%s://%s"`, of.path, u.Scheme, u.Host))
	}
}

// checkJoin makes sure that agents of ours can register with a partner, and be reached by its mesh.
func (r gatewayReader) checkJoin(at location, p Partner, own AMPPartner) {
	join := at.child(joinKey)
	switch {
	case !own.Join && own.JoinToken != "":
		r.d.atKey(at.child(joinTokenKey), at.child(joinTokenKey).path+" needs join = true in the same table")
	case !own.Join:
	case own.Queues:
		r.d.atKey(join, join.path+" does not go with queues: a registry is asked over HTTP")
	case p.URL == "":
		r.d.atKey(join, join.path+" needs url in the same table, where the mesh has its registry")
	case r.server.PublicURL == "":
		r.d.atKey(join, join.path+" needs public_url in [server], where the mesh reaches the agents")
	}
}
