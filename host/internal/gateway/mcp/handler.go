package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
)

// The headers of the transport.
const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
)

// withoutSessions is the first version of the protocol without sessions.
const withoutSessions = "2026-07-28"

// ServeHTTP serves /mcp and /mcp/SWARM.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header.Get("Origin"); origin != "" && !g.allowsOrigin(origin, r.Host) {
		http.Error(w, "the origin "+origin+" is not allowed", http.StatusForbidden)
		return
	}
	caller, err := g.rt.Identify(r)
	if err != nil {
		http.Error(w, "no valid credential", http.StatusUnauthorized)
		return
	}
	q := &request{caller: caller, trace: swarm.HeaderTrace(r.Header)}
	if q.swarm = strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/mcp"), "/"); strings.Contains(q.swarm, "/") {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodPost && !g.readBody(w, r, q) {
		return
	}
	if q.swarm != "" && len(g.agents(q)) == 0 {
		unknown := "no agent of the swarm " + q.swarm + " is shown to you"
		if q.body != nil {
			g.recordRefused(q, unknown)
		}
		http.Error(w, unknown, http.StatusNotFound)
		return
	}
	q.over = r.Context()
	r = r.WithContext(context.WithValue(q.over, requestKey{}, q))
	defer g.recordUnread(r, q)
	if r.Header.Get(versionHeader) >= withoutSessions {
		g.newer.ServeHTTP(w, r)
		return
	}
	g.serveSession(w, r, q)
}

// allowsOrigin reports whether a web page of an origin may send requests: another site's
// page could reach a host on the person's own machine.
func (g *Gateway) allowsOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return u.Host == host || origin == strings.TrimSuffix(g.opt.PublicURL, "/") || slices.Contains(g.opt.Origins, origin)
}

// readBody checks the JSON of a POST before the SDK reads it, and takes its id.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request, q *request) bool {
	body, err := wire.ReadBody(io.LimitReader(r.Body, g.opt.MaxBody+1), r.ContentLength)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large), int64(len(body)) > g.opt.MaxBody:
		const tooLarge = "the request is too large"
		g.recordRefused(q, tooLarge)
		refuse(w, http.StatusRequestEntityTooLarge, codeInvalidRequest, tooLarge)
		return false
	case err != nil:
		return false // the host answers for a body that it could not read
	}
	q.body = body
	if q.call, q.isReply, err = checkBody(body, g.opt.MaxDepth); err != nil {
		g.recordRefused(q, err.Error())
		refuse(w, http.StatusBadRequest, codeParse, err.Error())
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}

// recordUnread records a request that the SDK could not read. What has no id gets no
// answer, and a handler may be called after it was taken.
func (g *Gateway) recordUnread(r *http.Request, q *request) {
	if q.call != "" && !q.isReply && !q.read.Load() && q.over.Err() == nil && r.Context().Err() == nil {
		g.recordRefused(q, "it is no request that is served here")
	}
}

func (g *Gateway) recordRefused(q *request, reason string) {
	g.rt.Record(gateway.Event{Caller: q.caller, Type: http.MethodPost, Text: q.body, Verdict: "refused", Reason: reason})
}

// serveSession serves a request of an older client: it belongs to a session or opens one.
// The id of another principal's session is as unknown as any.
func (g *Gateway) serveSession(w http.ResponseWriter, r *http.Request, q *request) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		place, ok := g.sessions.reserve(q.caller)
		if !ok {
			w.Header().Set("Retry-After", "10")
			http.Error(w, "too many sessions", http.StatusServiceUnavailable)
			return
		}
		defer place.release()
		q.slot = place
		g.older.ServeHTTP(w, r)
		return
	}
	s, ok := g.sessions.acquire(id, q.caller)
	if !ok {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	defer s.release()
	if r.Method == http.MethodDelete {
		s.end(errSessionOver)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	q.session, q.over = s, s.ctx
	g.older.ServeHTTP(w, r)
}
