package host

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/auth"
	"skep/host/internal/api/listener"
	"skep/host/internal/api/rest"
	"skep/host/internal/api/server"
	"skep/host/internal/datadir"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/a2a"
	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/catalog"
	"skep/host/internal/gateway/door"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/mcp"
	"skep/host/internal/gateway/messagelog"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/peer/signature"
)

// NewGateway makes a gateway on its door.
type NewGateway func(rt gateway.Runtime, g config.Gateway) (gateway.Gateway, error)

// openGateways makes the gateways of the configuration. They serve nothing yet.
func (h *Host) openGateways(context.Context) error {
	protocols := map[string]NewGateway{"a2a": h.newA2A, "acp": h.newACP, "amp": h.newAMP, "iacp": h.newIACP, "mcp": h.newMCP, "uamp": h.newUAMP}
	maps.Copy(protocols, h.opt.Gateways)
	if err := h.openMessages(); err != nil {
		return err
	}
	for _, g := range h.opt.Config.Gateways {
		open, built := protocols[g.Name]
		if !built {
			return fmt.Errorf("[gateways.%s]: this build has no such gateway", g.Name)
		}
		c := catalog.New(catalog.Options{Gateway: g.Name, Definitions: h.definitions, HTTP2: g.Name == uamp.Name, Network: h.opt.Network})
		var rt gateway.Runtime = door.New(door.Options{
			Gateway: g.Name, Swarm: h.swarm, State: h.store.GatewayState(), Keep: g.Keep, KeepRaw: g.KeepRaw, Asks: g.Asks,
			Rate:          auth.Rate{Requests: g.RateLimit.Requests, Per: g.RateLimit.Per},
			ExposedAgents: c.ExposedAgents, Partner: c.Partner, Record: func(e gateway.Event) { h.messages.Record(g.Name, e) },
			Identify: func(r *http.Request) (gateway.Caller, error) { return h.identify(c, r) },
			Renew:    func(was gateway.Caller) (gateway.Caller, error) { return h.renew(c, was) },
		})
		if h.opt.Runtime != nil {
			rt = h.opt.Runtime(g.Name, rt)
		}
		made, err := open(rt, g)
		if err != nil {
			c.Close()
			return fmt.Errorf("open [gateways.%s]: %w", g.Name, err)
		}
		h.gateways = append(h.gateways, server.Gateway{Gateway: made, Catalog: c})
	}
	return nil
}

// openMessages opens the log of foreign messages of a host that has gateways.
func (h *Host) openMessages() (err error) {
	if len(h.opt.Config.Gateways) > 0 {
		h.messages, err = messagelog.Open(h.opt.DataDir, messagelog.Options{
			Keep: int64(h.opt.Config.Store.MessageLog), Refusals: h.audit, Logger: h.logOf("gateways"),
		})
	}
	return err
}

// gateway returns an open gateway by its name, nil if there is none.
func (h *Host) gateway(name string) (gateway.Gateway, *catalog.Catalog) {
	for _, g := range h.gateways {
		if g.Name() == name {
			return g.Gateway, g.Catalog
		}
	}
	return nil, nil
}

// identify returns the caller of a mounted request.
func (h *Host) identify(c *catalog.Catalog, r *http.Request) (gateway.Caller, error) {
	who, err := h.server.Identify(r)
	if err != nil {
		kind := gateway.ErrDenied
		if _, retry := rest.Status(err); retry > 0 {
			kind = gateway.ErrBusy
		}
		return gateway.Caller{}, fmt.Errorf("%w: %w", kind, err)
	}
	caller := c.Caller(who.Principal)
	caller.Recheck, caller.Digest = who.Recheck, who.Digest
	return caller, nil
}

// renew returns a caller as the configuration in force has him, if his credential still
// holds.
func (h *Host) renew(c *catalog.Catalog, was gateway.Caller) (gateway.Caller, error) {
	now := c.Caller(was.Principal)
	now.Digest = was.Digest
	holder, holds := h.server.Holder(was.Digest)
	switch {
	case was.Digest != auth.Digest{} && (!holds || holder != was.Principal):
		return now, fmt.Errorf("its credential is not valid any more: %w", gateway.ErrDenied)
	case now.Realm != was.Realm:
		return now, fmt.Errorf("%q is no partner any more: %w", was.Realm, gateway.ErrDenied)
	}
	return now, nil
}

func (h *Host) newMCP(rt gateway.Runtime, g config.Gateway) (gateway.Gateway, error) {
	opt := mcp.Options{
		Hold: g.Hold, MaxBody: int64(g.MaxBody), MaxDepth: g.MaxDepth, Sessions: g.Sessions,
		Shared: len(definition.Tenants(h.opt.Config)) > 1, PublicURL: h.opt.Config.Server.PublicURL, Origins: h.opt.Config.Server.CORSOrigins, Version: h.opt.Version, Logger: h.logOf("gateways"),
	}
	if own, ok := g.Protocol.(*config.MCPGateway); ok {
		opt.SessionIdle = own.SessionIdle
	}
	if issuer := h.opt.Config.Auth.JWT.Issuer; issuer != "" {
		opt.AuthorizationServers = []string{issuer}
	}
	return mcp.New(rt, opt), nil
}

// maxPushReply bounds what a push or a callback reads of its receiver, in bytes.
const maxPushReply = 64 << 10

// pushBounds bound the requests that send a push or a callback.
func pushBounds() catalog.PublicBounds {
	return catalog.PublicBounds{Methods: []string{http.MethodPost}, MaxReply: maxPushReply, Timeout: publicTimeout}
}

// publicTimeout is the time for a request to an address that is no partner's own.
const publicTimeout = 30 * time.Second

func (h *Host) newA2A(rt gateway.Runtime, g config.Gateway) (gateway.Gateway, error) {
	own, _ := g.Protocol.(*config.A2A)
	key, err := h.openCardKey(own.SignCards)
	if err != nil {
		return nil, err
	}
	tenants := slices.Collect(maps.Keys(definition.Tenants(h.opt.Config)))
	pushes, err := catalog.NewPublicClient(h.opt.Network, pushBounds())
	if err != nil {
		return nil, err
	}
	return a2a.New(a2a.Options{
		Runtime: rt, PublicURL: h.opt.Config.Server.PublicURL, Hold: g.Hold, Keep: g.Keep,
		MaxBody: int64(g.MaxBody), MaxDepth: g.MaxDepth, V03: own.V03, Push: own.Push, CardKey: key,
		PushClient: pushes, CheckPush: catalog.CheckPublic, Log: h.logOf("gateways"),
		Tenants: func(context.Context) ([]string, error) { return tenants, nil },
	}), nil
}

// wantsHTTP3 reports whether a gateway is to be reached over HTTP/3.
func wantsHTTP3(c *config.Config) bool {
	return slices.ContainsFunc(c.Gateways, func(g config.Gateway) bool {
		own, is := g.Protocol.(*config.UAMP)
		return is && own.HTTP3
	})
}

// maxDocument bounds the DID documents of others, in bytes.
const maxDocument = 64 << 10

func (h *Host) newUAMP(rt gateway.Runtime, g config.Gateway) (gateway.Gateway, error) {
	own, _ := g.Protocol.(*config.UAMP)
	keys, err := h.openGatewayKey(datadir.GatewayKeyName(g.Name))
	if err != nil {
		return nil, err
	}
	documents, err := catalog.NewPublicClient(h.opt.Network, catalog.PublicBounds{Methods: []string{http.MethodGet}, MaxReply: maxDocument, Timeout: publicTimeout, OfferHTTP2: true})
	if err != nil {
		return nil, err
	}
	signing := uamp.Keys{Current: keys.Current.Private(), NextFrom: keys.NextFrom}
	if keys.Next != nil {
		signing.Next = keys.Next.Private()
	}
	if keys.Old != nil {
		signing.Old = keys.Old.Private()
	}
	return uamp.New(uamp.Options{
		Runtime: rt, DID: own.DID, Keys: signing, Strict: g.Profile == config.ProfileStrict, MaxBody: int64(g.MaxBody), MaxDepth: g.MaxDepth,
		RatePerHour: ratePerHour(g.RateLimit), Certificates: h.opt.Config.Server.TLS.ClientCA != "", RequireToken: own.RequireCapToken,
		ClockSkew: own.ClockSkew, MaxWindow: own.MaxWindow, Sessions: g.Sessions, Pace: h.paceOf, Subscriptions: own.Subscriptions, Keep: g.Keep, Fetch: documents.Transport, Since: time.Now(), Log: h.logOf("gateways"),
		Tenants: slices.Collect(maps.Keys(definition.Tenants(h.opt.Config))),
	})
}

// ratePerHour is how many requests of a realm an hour has, 0 for no limit.
func ratePerHour(r config.RealmRate) int {
	if r.Requests == 0 {
		return 0
	}
	return max(1, int(float64(r.Requests)*float64(time.Hour)/float64(r.Per)))
}

// paceOf returns the bounds of a tenant's messages on WebSockets: the same as for its bodies.
func (h *Host) paceOf(tenant string) wire.Pace { return h.server.Pace(tenant) }

func (h *Host) newACP(rt gateway.Runtime, g config.Gateway) (gateway.Gateway, error) {
	own, _ := g.Protocol.(*config.ACP)
	return acp.New(acp.Options{
		Runtime: rt, PublicURL: h.opt.Config.Server.PublicURL, Strict: g.Profile == config.ProfileStrict, Declarations: own.Declarations,
		Hold: g.Hold, MaxBody: int64(g.MaxBody), MaxDepth: g.MaxDepth, Sessions: g.Sessions, Pace: h.paceOf, MQTT: h.brokerOf(g.Name, own.MQTT), Log: h.logOf("gateways"),
	}), nil
}

func (h *Host) newAMP(rt gateway.Runtime, g config.Gateway) (gateway.Gateway, error) {
	own, _ := g.Protocol.(*config.AMP)
	callbacks, err := catalog.NewPublicClient(h.opt.Network, pushBounds())
	if err != nil {
		return nil, err
	}
	endpoints, err := catalog.NewPublicClient(h.opt.Network, catalog.PublicBounds{Methods: []string{http.MethodGet, http.MethodPost}, MaxReply: int64(g.MaxBody), GRPC: true})
	if err != nil {
		return nil, err
	}
	return amp.New(amp.Options{
		Runtime: rt, PublicURL: h.opt.Config.Server.PublicURL, Token: own.Token, Lease: own.Lease, CallbackClient: callbacks, EndpointClient: endpoints, CheckCallback: catalog.CheckPublic, Strict: g.Profile == config.ProfileStrict, Hold: g.Hold, MaxBody: int64(g.MaxBody), MaxDepth: g.MaxDepth, Sessions: g.Sessions, Pace: h.paceOf, Keep: g.Keep, Log: h.logOf("gateways"),
		Partners: h.partnersOf(g.Name), RabbitMQ: h.rabbitMQOf(own.RabbitMQ), Kafka: h.kafkaOf(own.Kafka),
	}), nil
}

func (h *Host) newIACP(rt gateway.Runtime, g config.Gateway) (gateway.Gateway, error) {
	own, _ := g.Protocol.(*config.IACP)
	return iacp.New(iacp.Options{
		Runtime: rt, Network: h.opt.Config.Swarm.Name, Strict: g.Profile == config.ProfileStrict, MaxBody: int64(g.MaxBody), MaxDepth: g.MaxDepth,
		Sessions: g.Sessions, Asks: g.Asks, Heartbeat: own.Heartbeat, Idle: own.Idle, Ack: own.Ack, Log: h.logOf("gateways"), Mark: listener.Mark, Partners: h.partnersOf(g.Name),
		Listen: func(ctx context.Context) (net.Listener, error) {
			var refused error
			for address := range own.Addresses() {
				l, err := h.server.OpenSocket(ctx, address)
				if err == nil {
					return l, nil
				}
				refused = cmp.Or(refused, err)
			}
			return nil, fmt.Errorf("listen on %s ([gateways.iacp] listen): %w", own.Listen, refused)
		},
		Serve: func(w http.ResponseWriter, r *http.Request) { h.server.ServePublic(w, r) },
	}), nil
}

// openSockets opens the sockets that gateways have besides the public listener.
func (h *Host) openSockets(ctx context.Context) error {
	for _, g := range h.gateways {
		if own, has := g.Gateway.(gateway.Opener); has {
			if err := own.Open(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// brokerOf returns the broker of a gateway's partners, nil for none.
func (h *Host) brokerOf(gatewayName string, m config.MQTT) *acp.MQTT {
	if m.Broker == "" {
		return nil
	}
	return &acp.MQTT{
		URL: m.Broker, ClientID: cmp.Or(m.ClientID, "skep-"+h.opt.Config.Swarm.Name), Username: m.Username, Password: m.Password.Reveal(), TLS: m.TLS,
		Partners: h.partnersOf(gatewayName),
	}
}

// rabbitMQOf returns the broker of AMP's partners, nil for none.
func (h *Host) rabbitMQOf(m config.RabbitMQ) *amp.RabbitMQ {
	if m.Broker == "" {
		return nil
	}
	return &amp.RabbitMQ{URL: m.Broker, Username: m.Username, Password: m.Password.Reveal(), TLS: m.TLS, Exchange: m.Exchange, Swarm: h.opt.Config.Swarm.Name}
}

// kafkaOf returns the brokers of AMP's partners, nil for none.
func (h *Host) kafkaOf(k config.Kafka) *amp.Kafka {
	if len(k.Brokers) == 0 {
		return nil
	}
	o := &amp.Kafka{Brokers: k.Brokers, Username: k.Username, Password: k.Password.Reveal(), Mechanism: k.Mechanism, Prefix: k.Prefix, Swarm: h.opt.Config.Swarm.Name}
	if !k.Plain {
		o.TLS = cmp.Or(k.TLS, &tls.Config{MinVersion: tls.VersionTLS12})
	}
	return o
}

// partnersOf lists the partners of a gateway in force.
func (h *Host) partnersOf(gatewayName string) func() []gateway.Partner {
	return func() []gateway.Partner {
		_, c := h.gateway(gatewayName)
		return c.Partners()
	}
}

// openCardKey opens the key that signs agent cards, or makes one; nil without signatures.
func (h *Host) openCardKey(sign bool) (*a2a.CardKey, error) {
	if !sign {
		return nil, nil
	}
	keys, err := h.openGatewayKey(datadir.GatewayKeyName("a2a"))
	if err != nil {
		return nil, err
	}
	return cardKey(keys)
}

// openGatewayKey opens a key with which a gateway signs, or makes one.
func (h *Host) openGatewayKey(name string) (signature.Rotation, error) {
	keys, made, err := signature.OpenRotation(filepath.Join(h.opt.DataDir, filepath.FromSlash(name)), time.Now())
	if err == nil && made {
		err = h.audit.Record(audit.Entry{Act: "key.create", Outcome: audit.Done, Target: name})
	}
	return keys, err
}

// cardKey is a signing key with those that are published besides.
func cardKey(keys signature.Rotation) (*a2a.CardKey, error) {
	key, err := a2a.NewCardKey(keys.Current.Private())
	if err == nil && keys.Next != nil {
		var next *a2a.CardKey
		next, err = a2a.NewCardKey(keys.Next.Private())
		key = key.WithNext(next, keys.NextFrom)
	}
	if err == nil && keys.Old != nil {
		var old *a2a.CardKey
		old, err = a2a.NewCardKey(keys.Old.Private())
		key = key.WithOld(old)
	}
	return key, err
}

// mounts are the routes of all gateways.
func (h *Host) mounts() (list []rest.Mount) {
	for i, g := range h.gateways { // in the order of the configuration
		remedy := h.opt.Config.Gateways[i].BodyRemedy()
		for _, m := range g.Mounts() {
			list = append(list, rest.Mount{
				Method: m.Method, Pattern: m.Pattern, Proof: rest.Proof(m.Proof), Metadata: m.Metadata,
				MaxBody: m.MaxBody, BodyRemedy: remedy, Streams: m.Streams, OwnPlaces: m.OwnPlaces, Handler: m.Handler,
			})
		}
	}
	return list
}

// certificateNames are the callers that the certificates of partners name.
func certificateNames(cfg *config.Config) map[string]auth.Principal {
	names := map[string]auth.Principal{}
	for _, g := range cfg.Gateways {
		for _, p := range g.Partners {
			for _, name := range p.Certificates {
				names[name] = auth.Principal{Tenant: p.Tenant, Role: auth.Agent, ID: p.Name, Peer: p.Name}
			}
		}
	}
	return names
}
