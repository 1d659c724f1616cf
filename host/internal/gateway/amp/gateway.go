package amp

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/sockets"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/wire"
)

// Name is the gateway's name in swarm.toml.
const Name = "amp"

// defaultMaxBody bounds a message where the options do not, in bytes.
const defaultMaxBody = 1 << 20

// Options are the settings of [gateways.amp], and what the host lends the gateway.
type Options struct {
	Runtime gateway.Runtime
	// Partners lists the configured realms, for messages that only a signature proves. Nil
	// is none.
	Partners func() []gateway.Partner
	// PublicURL is the host's address for partners: callbacks are below it. Empty where it is not
	// known.
	PublicURL string
	// Token is the name of the protocol in messages to partners. Default [message.AMP].
	Token string
	// CallbackClient sends results to callbacks that callers have named, CheckCallback
	// returns why it would call no such address.
	CallbackClient *http.Client
	CheckCallback  func(address string) error
	// EndpointClient sends questions to the endpoints of registered agents, and reads where their
	// answers are. Its requests have the time of the partner for an answer.
	EndpointClient *http.Client
	// Strict refuses what the document leaves open.
	Strict bool
	// Hold is how long a caller that waits is held. Default 30 s.
	Hold time.Duration
	// MaxBody bounds a message, in bytes. Default 1 MiB.
	MaxBody int64
	// MaxDepth bounds the levels of a payload. Default 64.
	MaxDepth int
	// Lease is how long a registration counts without a heartbeat. Default 5 minutes.
	Lease time.Duration
	// Keep is how long a repeat of a message is known: a signature that came by the broker counts
	// as long. Default 24 hours.
	Keep time.Duration
	// RabbitMQ or Kafka is the broker of partners with queues; both are nil for none.
	RabbitMQ *RabbitMQ
	Kafka    *Kafka
	// Sessions bounds the WebSockets of one realm, with its calls of gRPC in both directions. Default 256.
	Sessions int
	// Pace bounds a tenant's messages on their way over WebSockets and such calls. Default: each is whole
	// within a minute.
	Pace func(tenant string) wire.Pace
	// JoinPause is the time between two looks at which agents of ours take part in the meshes of
	// partners. Default 5 s.
	JoinPause time.Duration
	// Probe is the time between two looks at the health of a registered agent. Default 30 s.
	Probe time.Duration
	// Log gets what is wrong with the host, not with callers. Default: nothing is logged.
	Log *slog.Logger
}

// Gateway serves AMP. Make one with [New].
type Gateway struct {
	Options
	reader message.Reader
	// socketReader reads messages whose answers come as messages of their own (D-M2).
	socketReader message.Reader
	sockets      *sockets.Set[*socket]
	grpc         *grpc.Server
	queue        *queue // nil without a broker
	schemas      *schemas
	measures     *measures
	waiting      *waiting
	registered   *registrations
	probes       *probes
	joins        *joins
	notices      *state.Followers[struct{}]
	contexts     contexts
	// stopped is closed when the host stops.
	stopped chan struct{}
}

// New returns a gateway. It starts nothing.
func New(o Options) *Gateway {
	o.Hold = cmp.Or(o.Hold, 30*time.Second)
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	o.MaxDepth = cmp.Or(o.MaxDepth, 64)
	o.Token = cmp.Or(o.Token, message.AMP)
	o.Lease = cmp.Or(o.Lease, defaultLease)
	o.Probe = cmp.Or(o.Probe, defaultProbe)
	o.JoinPause = cmp.Or(o.JoinPause, defaultJoinPause)
	o.Keep = cmp.Or(o.Keep, 24*time.Hour)
	o.Sessions = cmp.Or(o.Sessions, 256)
	if o.Pace == nil {
		o.Pace = func(string) wire.Pace { return wire.Within(time.Minute) }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Partners == nil {
		o.Partners = func() []gateway.Partner { return nil }
	}
	reader := message.Reader{Strict: o.Strict, Depth: o.MaxDepth}
	socketReader := reader
	socketReader.NeedsID = true
	g := &Gateway{Options: o, reader: reader, socketReader: socketReader, sockets: sockets.New[*socket](Name, o.Sessions), schemas: newSchemas(), measures: newMeasures(), waiting: newWaiting(), registered: &registrations{store: o.Runtime.State(), lease: o.Lease}, probes: newProbes(), joins: newJoins(), notices: state.NewFollowers[struct{}](), contexts: contexts{o.Runtime.State()}, stopped: make(chan struct{})}
	g.queue, g.grpc = newQueue(g), newGRPCServer(g)
	return g
}

// Name implements [gateway.Gateway].
func (g *Gateway) Name() string { return Name }

// Health implements [gateway.Gateway].
func (g *Gateway) Health() gateway.Health {
	h := gateway.Health{OK: true, Connections: g.sockets.Len()}
	if g.queue != nil {
		if err := g.queue.state(); err != nil {
			h.OK, h.Detail = false, err.Error()
		}
	}
	return h
}

// prefixes begin the paths: one for each token of the protocol (D-M1).
var prefixes = []string{"/aip/v1/", "/amp/v1/"}

// answeredExcess is how much longer than max_body a message may be, in bytes, and still be
// refused by a message: the listener ends what is longer.
const answeredExcess = 64 << 10

// Parts of the paths behind a prefix.
const (
	invokePath   = "invoke"
	answersPath  = "messages/"
	healthPath   = "health"
	agentsPath   = "agents/"
	healthSuffix = "/health"
)

// Mounts implements [gateway.Gateway]. A credential may be in the message, so the handlers
// ask for it.
func (g *Gateway) Mounts() (list []gateway.Mount) {
	for _, prefix := range prefixes {
		list = append(list,
			gateway.Mount{Method: http.MethodPost, Pattern: prefix + invokePath, Proof: gateway.OtherProof, MaxBody: g.MaxBody + answeredExcess, Streams: true, Handler: http.HandlerFunc(g.serveInvoke)},
			gateway.Mount{Method: http.MethodPost, Pattern: prefix + callbacksPath + "*rest", Proof: gateway.OtherProof, MaxBody: g.MaxBody + answeredExcess, Handler: g.callbackHandler(prefix + callbacksPath)},
			gateway.Mount{Method: http.MethodGet, Pattern: prefix + answersPath + "*rest", Proof: gateway.OtherProof, Streams: true, Handler: g.answerHandler(prefix + answersPath)},
			gateway.Mount{Method: http.MethodGet, Pattern: prefix + socketPath, Proof: gateway.OtherProof, Streams: true, Handler: g.socketHandler(prefix)},
			gateway.Mount{Method: http.MethodGet, Pattern: prefix + healthPath, Proof: gateway.OtherProof, Handler: http.HandlerFunc(g.serveHealth)},
			gateway.Mount{Method: http.MethodGet, Pattern: prefix + agentsPath + "*rest", Proof: gateway.OtherProof, Handler: g.agentHealthHandler(prefix + agentsPath)},
		)
	}
	return append(list, g.grpcMounts()...)
}
