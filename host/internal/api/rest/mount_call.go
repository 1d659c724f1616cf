package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
)

// dispatchMount runs the gates and the handler of a mount.
func (h *Handler) dispatchMount(w *recorder, r *http.Request, m Mount) {
	w.route = cmp.Or(m.Method, "*") + " " + m.Pattern
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	c := &call{h: h, w: w, cancel: cancel, isHop: h.opt.OtherHosts.isHop(r, h.opt.Now()), forwards: h.forwardsMount(m, r)}
	c.r = r.WithContext(context.WithValue(ctx, callKey{}, c))
	c.leave = func() {}
	defer func() { c.leave() }()
	untrack, isLeft := c.trackHop()
	if isLeft {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	defer untrack()
	if err := c.admitMount(m); err != nil {
		c.noteStopping(err)
		h.fail(w, c.r, err)
		return
	}
	body := c.boundBody(m)
	defer body.release()
	w.staysOpen = m.Streams
	err := c.checkHopBody(m)
	if err == nil {
		err = c.serveMount(m)
	}
	if err != nil {
		c.noteStopping(err)
		h.fail(w, c.r, err)
		return
	}
	if w.status == 0 && body.err != nil {
		h.fail(w, c.r, h.bodyFault(body.err, c.bodyTooLarge(m)))
		return
	}
	c.chargeMount(m)
	if err := w.compressor.end(); err != nil {
		w.status = clientGone
	}
}

// callKey is the key of the call in a mounted request's context.
type callKey struct{}

// admitMount applies the gates that need no body.
func (c *call) admitMount(m Mount) (err error) {
	switch m.Proof {
	case NoProof:
		err = c.h.admitAddress(c.w)
	case BearerProof:
		err = m.namingIssuers(c.r, c.proveMounted())
	case HandlerProof:
		err = c.admitUnproven()
	}
	switch {
	case err != nil:
		return err
	case c.h.opt.Draining != nil && c.h.opt.Draining():
		return swarm.ErrDraining
	case m.Proof != HandlerProof && m.MaxBody >= 0 && c.r.ContentLength > c.mountLimit(m):
		return c.bodyTooLarge(m)
	case !m.Streams || m.OwnPlaces:
		return nil
	}
	return c.countStream()
}

// admitUnproven admits a caller whom the handler will identify. One with a token has the
// limits of its principal, whoever else is at the address.
func (c *call) admitUnproven() error {
	if !strings.HasPrefix(strings.ToLower(c.r.Header.Get("Authorization")), "bearer ") {
		if c.isHop {
			return nil
		}
		if wait, ok := c.h.byAddress.Check(c.w.address); !ok {
			return c.h.tooManyRequests(wait)
		}
		return nil
	}
	err := c.identifyOnce()
	if status, _ := Status(err); err != nil && status != http.StatusUnauthorized {
		return err
	}
	return nil // the handler may serve him all the same
}

// countStream counts a stream for its caller, by his address until he is known.
func (c *call) countStream() error {
	who := c.w.who
	if who.Role == "" {
		who.Tenant, who.ID = c.h.opt.Tenant, c.w.address
	}
	leave, err := c.h.openStreams.acquireStream(who)
	if err != nil {
		return err
	}
	c.leave()
	c.leave, c.streams = leave, true
	return nil
}

// namingIssuers adds the document of the path to a refusal for want of a token.
func (m Mount) namingIssuers(r *http.Request, err error) error {
	f := (*fault)(nil)
	if m.Metadata != "" && errors.As(err, &f) && f.challenge != "" {
		f.challenge += `, resource_metadata="` + m.Metadata + r.URL.EscapedPath() + `"`
	}
	return err
}

// proveMounted authenticates the caller of a mount, and puts him into the context.
func (c *call) proveMounted() error {
	c.w.Header().Set("Cache-Control", "no-store")
	who, ok, err := auth.Principal{}, false, error(nil)
	if len(c.r.Header.Values("Authorization")) == 0 {
		if who, ok = c.hopCaller(); !ok {
			who, ok, err = c.h.opt.Certificates.Principal(c.r.TLS)
		}
	}
	switch {
	case err != nil:
		c.h.counters.unauthenticated.Inc()
		if err := c.h.admitAddress(c.w); err != nil {
			return err
		}
		return unauthorized(err.Error())
	case ok:
		c.w.who = who
		err = c.admitPrincipal()
	default:
		err = c.admitToken(auth.Agent)
	}
	if err != nil {
		return err
	}
	c.r = c.r.WithContext(auth.WithPrincipal(c.r.Context(), c.w.who))
	if c.token != "" {
		go c.endWithToken()
	}
	return nil
}

// endWithToken cancels a mounted request when its token is no longer valid.
func (c *call) endWithToken() {
	ctx := c.ctx()
	tick := time.NewTicker(c.h.opt.Ping)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c.recheckToken() != nil && ctx.Err() == nil {
			c.auditCutOff()
			c.cancel(errRevoked)
			return
		}
	}
}

// Identify authenticates the caller of a mounted request by its token or its client
// certificate, under the limits of [BearerProof]. r has the context of the request that
// the mount's handler got. The error's text may be shown to the caller.
func (h *Handler) Identify(r *http.Request) (auth.Proven, error) {
	c, ok := r.Context().Value(callKey{}).(*call)
	if !ok {
		return auth.Proven{}, errors.New("the request is of no mount")
	}
	if err := c.identifyOnce(); err != nil {
		return auth.Proven{}, err
	}
	p := auth.Proven{Principal: c.w.who}
	if c.token != "" {
		p.Recheck = h.recheck(c.token, c.w.who)
		if d := auth.Digest(sha256.Sum256([]byte(c.token))); h.holds(d, c.w.who) {
			p.Digest = d
		}
	}
	return p, nil
}

// identifyOnce authenticates the caller unless that was done. From then on his stream is
// his own.
func (c *call) identifyOnce() error {
	if c.identified {
		return c.identifyErr
	}
	c.identified = true
	if c.w.who.Role == "" {
		c.identifyErr = c.proveMounted()
		if c.identifyErr == nil && c.streams {
			c.identifyErr = c.countStream()
		}
	}
	return c.identifyErr
}

// recheck returns a check of a token that outlives the request.
func (h *Handler) recheck(token string, who auth.Principal) func(context.Context) bool {
	return func(ctx context.Context) bool { return h.recheckToken(ctx, token, who) == nil }
}

// Holder implements [auth.Ledger] by the authenticator's.
func (h *Handler) Holder(d auth.Digest) (auth.Principal, bool) {
	l, ok := h.authenticator.(auth.Ledger)
	if !ok {
		return auth.Principal{}, false
	}
	p, ok := l.Holder(d)
	p.Tenant = cmp.Or(p.Tenant, h.opt.Tenant)
	return p, ok
}

func (h *Handler) holds(d auth.Digest, who auth.Principal) bool {
	p, ok := h.Holder(d)
	return ok && p == who
}

// Status returns the HTTP status for an error of [Handler.Identify], and after how many
// seconds the caller may try again, 0 for any time.
func Status(err error) (status, retryAfter int) {
	if f, known := toFault(err); known {
		return f.status, f.retryAfter
	}
	return http.StatusInternalServerError, 0
}

// chargeMount counts a request against the address where the handler has the proof and
// has not identified the caller, which counts by itself, and records that the handler has
// refused the caller.
func (c *call) chargeMount(m Mount) {
	if c.isHop {
		return
	}
	byHandler := m.Proof == HandlerProof && !c.identified
	if byHandler {
		c.h.byAddress.Charge(c.w.address)
	}
	switch c.w.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		if byHandler {
			c.h.counters.unauthenticated.Inc()
		}
	case http.StatusTooManyRequests:
	default:
		return
	}
	const text = "refused by the gateway"
	c.h.recordRefusal(c.w, c.r, &fault{status: c.w.status, detail: text, reason: text})
}

func (c *call) mountLimit(m Mount) int64 { return cmp.Or(m.MaxBody, c.h.opt.MaxBody) }

// mountBody is the body of a mounted request: bounded, and paced as other bodies.
type mountBody struct {
	io.ReadCloser
	r *pacedBody // nil for a stream of messages
	w *recorder
	// keep gets what is read, nil for a body that is not kept. A kept one counts until release.
	keep *[]byte
	err  error // why it could not be read to its end
}

// boundBody bounds the body of the request.
func (c *call) boundBody(m Mount) *mountBody {
	b := &mountBody{ReadCloser: c.r.Body, w: c.w}
	if m.MaxBody < 0 {
		c.w.clearReadDeadline()
		return b
	}
	if c.r.Body != http.NoBody {
		if c.forwards {
			b.keep = &c.body
		}
		b.r = c.pace(http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, c.mountLimit(m)))
		c.r.Body = b
	}
	return b
}

func (b *mountBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.keep != nil {
		*b.keep = append(*b.keep, p[:n]...)
	}
	switch {
	case errors.Is(err, io.EOF):
		b.w.clearReadDeadline()
		if b.keep == nil {
			b.r.release()
		}
	case err != nil:
		b.err = err
		if isOfBody(err) { // net/http has a text alone for a short body of HTTP/2
			err = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
		}
	}
	return n, err
}

// isOfBody reports whether a body broke off by itself: it met no limit of the host.
func isOfBody(err error) bool {
	return !errors.As(err, new(*http.MaxBytesError)) && !errors.As(err, new(*fault)) && !errors.Is(err, os.ErrDeadlineExceeded)
}

// release ends the count of what was read.
func (b *mountBody) release() {
	if b.r != nil {
		b.r.release()
	}
}
