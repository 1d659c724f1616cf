package rest

import (
	"errors"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/auth"
)

// Handler serves the public listener. It is made by [New].
type Handler struct {
	rt    Runtime
	known auth.Authenticator
	opt   Options

	mail, own http.Handler
	described described
	names     names
	byCaller  *auth.Limiter
	byAddress *auth.Limiter
	guesses   *auth.Guesses
	health    *health
	streams   *crowd
	counters  counters
}

// New returns the handler of the public listener.
func New(rt Runtime, known auth.Authenticator, opt Options) *Handler {
	opt = opt.withDefaults()
	h := &Handler{
		rt: rt, known: known, opt: opt,
		names:     newNames(opt.Loopback, opt.Hosts, opt.PublicURL),
		byCaller:  auth.NewLimiter(opt.Rate, opt.Now),
		byAddress: auth.NewLimiter(opt.Rate, opt.Now),
		guesses:   auth.NewGuesses(opt.Guess, opt.Now),
		health:    newHealth(rt.Started()),
		streams:   newCrowd(opt.MaxStreams, opt.MaxStreamsPerPrincipal),
		described: newDescribed(),
	}
	h.mail, h.own = h.mailRouter(), h.ownMux()
	return h
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{ResponseWriter: w, stall: h.opt.Stall, id: requestID(r), begun: time.Now(), from: proxies(h.opt.TrustedProxies).caller(r)}
	head := rec.Header()
	head.Set("X-Request-Id", rec.id)
	guardAnswer(head, r)
	defer h.done(rec, r)
	rec.limitReading(r)
	if !h.names.take(r.Host) {
		h.fail(rec, r, errWrongHost)
		return
	}
	if h.crossOrigin(rec, r) {
		return
	}
	if !isOwn(r.URL.Path) {
		h.mail.ServeHTTP(rec, r)
		return
	}
	if p := r.URL.EscapedPath(); path.Clean(p) != strings.TrimSuffix(p, "/") {
		// The multiplexer would redirect it.
		h.notFound(rec, r)
		return
	}
	h.own.ServeHTTP(rec, r)
}

func isOwn(path string) bool { return strings.HasPrefix(path, ownPrefix) }

// dispatch lets a request through to its route.
func (h *Handler) dispatch(w http.ResponseWriter, r *http.Request, rt route) {
	rec := w.(*recorder)
	rec.route = rt.method + " " + rt.path
	c := &call{h: h, w: rec, r: r}
	err := c.admit(rt)
	if err == nil {
		err = c.readBody(rt)
	}
	if err == nil {
		err = rt.serve(c)
	}
	if err != nil {
		h.fail(rec, r, err)
	}
}

// done is the fence around a request: what goes wrong in it ends that request
// and not the host.
func (h *Handler) done(w *recorder, r *http.Request) {
	p := recover()
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		h.count(w, r)
		panic(p)
	}
	if p != nil {
		h.opt.Logger.Error("panic in a request", "request_id", w.id, "route", w.route, "panic", p, "stack", string(debug.Stack()))
		if w.status != 0 {
			// The caller must not take half an answer for a whole one.
			h.count(w, r)
			panic(http.ErrAbortHandler)
		}
		h.refuse(w, internal(w.id))
	}
	h.count(w, r)
}

// plainID is what a caller's own request id may consist of.
const plainID = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// requestID takes over the caller's id when it is a plain one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id != "" && len(id) <= 64 && strings.Trim(id, plainID) == "" {
		return id
	}
	return uuid.NewString()
}
