package rest

import (
	"errors"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
	"skep/host/internal/telemetry"
)

// Handler serves the public listener. Make one with [New].
type Handler struct {
	authenticator auth.Authenticator
	opt           Options

	mailRoutes  *httprouter.Router // with those of mounts
	skepRoutes  http.Handler
	description apiDescription
	hosts       allowedHosts
	byCaller    *auth.Limiter
	byTenant    *auth.Limiter
	byAddress   *auth.Limiter
	throttle    *auth.Throttle
	health      *health
	openStreams *streamLimiter
	bodies      *bodyLimiter
	compressors *sync.Pool
	counters    counters
	refusals    *telemetry.LineLimiter
	// hops are the requests of mounts from other hosts that are answered now, each a *call, by their keys.
	hops sync.Map

	// The parts of the runtime, one for each group of routes.
	swarms      Swarms
	posts       Posts
	tasks       Tasks
	streams     Streams
	interswarm  Interswarm
	deadLetters DeadLetters
	questions   Questions
	usage       Usage
	quarantine  Quarantine
}

// New returns the handler of the public listener.
func New(rt Runtime, known auth.Authenticator, opt Options) *Handler {
	opt = opt.withDefaults()
	h := &Handler{
		authenticator: known, opt: opt,
		swarms: rt, posts: rt, tasks: rt, streams: rt, interswarm: rt, deadLetters: rt, questions: rt, quarantine: rt, usage: rt,
		hosts:       newAllowedHosts(opt.Loopback, opt.Hosts, opt.PublicURL),
		byCaller:    auth.NewLimiter(opt.Rate, opt.Now),
		byTenant:    auth.NewLimiter(opt.TenantRate, opt.Now),
		byAddress:   auth.NewLimiter(opt.Rate, opt.Now),
		throttle:    auth.NewThrottle(opt.AuthFailures, opt.Now),
		counters:    newCounters(),
		refusals:    telemetry.NewLineLimiter(),
		health:      newHealth(rt.Started()),
		openStreams: newStreamLimiter(opt.MaxStreams, opt.MaxStreamsPerPrincipal, opt.SeveralTenants),
		bodies:      newBodyLimiter(opt.MaxHeldBodies, opt.MaxBody, opt.SeveralTenants),
		compressors: newCompressors(),
		description: newAPIDescription(),
	}
	h.mailRoutes, h.skepRoutes = h.mailRouter(), h.skepMux()
	return h
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{
		ResponseWriter: w, request: r, compressor: compressor{pool: h.compressors},
		stall: h.opt.Stall, id: requestID(r), start: time.Now(), address: trustedProxies(h.opt.TrustedProxies).clientAddress(r),
	}
	head := rec.Header()
	head.Set("X-Request-Id", rec.id)
	setSecurityHeaders(head, r)
	defer h.finishRequest(rec, r)
	defer rec.readPast(r)
	rec.limitBodyTime(r)
	if !h.hosts.allows(r.Host) {
		h.fail(rec, r, errWrongHost)
		return
	}
	if h.crossOrigin(rec, r) {
		return
	}
	if !isSkepPath(r.URL.Path) {
		h.mailRoutes.ServeHTTP(rec, r)
		return
	}
	if p := r.URL.EscapedPath(); path.Clean(p) != strings.TrimSuffix(p, "/") {
		// The multiplexer would redirect this path.
		h.notFound(rec, r)
		return
	}
	h.skepRoutes.ServeHTTP(rec, r)
}

func isSkepPath(path string) bool { return strings.HasPrefix(path, skepPrefix) }

// dispatch runs the checks and the handler of a route.
func (h *Handler) dispatch(w http.ResponseWriter, r *http.Request, rt route) {
	rec := w.(*recorder)
	rec.route = rt.method + " " + rt.path
	c := &call{h: h, w: rec, r: r, isHop: h.opt.OtherHosts.isHop(r, h.opt.Now())}
	rec.addHeaders = c.setIgnored
	err := c.admit(rt)
	if err == nil {
		err = c.readBody(rt)
	}
	if err == nil {
		err = rt.handle(c)
	}
	if moved, ok := errors.AsType[*swarm.Elsewhere](err); ok && h.opt.OtherHosts != nil {
		err = c.relay(rt, moved)
	}
	if err != nil {
		c.noteStopping(err)
		h.fail(rec, r, err)
		return
	}
	if err := rec.compressor.end(); err != nil {
		rec.status = clientGone
	}
}

// finishRequest counts the request and recovers from a panic in its handler: a
// panic ends the request, not the host.
func (h *Handler) finishRequest(w *recorder, r *http.Request) {
	p := recover()
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		h.countRequest(w, r)
		panic(p)
	}
	if p != nil {
		h.opt.Logger.Error("panic in a request", "request_id", w.id, "route", w.route, "panic", p, "stack", string(debug.Stack()))
		if w.status != 0 {
			// A partial answer must not look complete.
			h.countRequest(w, r)
			panic(http.ErrAbortHandler)
		}
		h.replyFault(w, internalFault(w.id))
	}
	h.countRequest(w, r)
}

// requestIDChars are the characters of a request id that is taken from the
// caller.
const requestIDChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// requestID returns the caller's request id if it is plain text of at most 64
// bytes, or a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id != "" && len(id) <= 64 && strings.Trim(id, requestIDChars) == "" {
		return id
	}
	return uuid.NewString()
}
