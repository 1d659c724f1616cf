package a2a

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
)

// prefix begins the addresses of agents: /a2a/SWARM/AGENT.
const prefix = "/a2a/"

// service is the path of gRPC. It serves version 1.0 only: requests of 0.3 have no place
// for the agent.
const service = "/lf.a2a.v1.A2AService/"

// Mounts implements [gateway.Gateway].
func (g *Gateway) Mounts() []gateway.Mount {
	return []gateway.Mount{
		{Method: http.MethodGet, Pattern: a2asrv.WellKnownAgentCardPath, Handler: http.HandlerFunc(g.serveHostCard)},
		{Pattern: prefix + "*rest", Proof: gateway.OtherProof, MaxBody: g.MaxBody, Streams: true, Handler: http.HandlerFunc(g.serve)},
		{Method: http.MethodPost, Pattern: service + "*rest", Proof: gateway.Bearer, MaxBody: g.MaxBody, Streams: true, Handler: http.HandlerFunc(g.serveGRPC)},
	}
}

// serve serves what is below an agent's address: its card to all, the rest to
// callers. An agent that the caller may not see is not found, like any other path.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, prefix)
	if path == keysPath && r.Method == http.MethodGet {
		g.serveKeys(w, r)
		return
	}
	swarm, rest, _ := strings.Cut(path, "/")
	name, rest, below := strings.Cut(rest, "/")
	if below {
		rest = "/" + rest
	}
	if rest == a2asrv.WellKnownAgentCardPath && r.Method == http.MethodGet {
		g.serveCard(w, r, swarm, name)
		return
	}
	caller, ok := g.identify(w, r)
	if !ok {
		return
	}
	agent := g.agent(caller, swarm, name)
	if agent == nil {
		g.Runtime.Record(gateway.Event{Caller: caller, Type: r.Method, Verdict: "refused", Cause: "not_found", Reason: "there is no agent " + strconv.Quote(swarm+"/"+name)})
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	g.serveAgent(w, r, &call{caller: caller, agent: agent, base: g.base(r), read: new(atomic.Bool)}, rest)
}

// identify finds the caller of a request, or refuses it.
func (g *Gateway) identify(w http.ResponseWriter, r *http.Request) (c gateway.Caller, ok bool) {
	c, err := g.Runtime.Identify(r)
	switch {
	case err == nil:
		return c, true
	case errors.Is(err, gateway.ErrBusy):
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusTooManyRequests, err.Error())
	default:
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, err.Error())
	}
	return c, false
}

// refuse answers a request that reaches no binding, in the form of the host's other doors.
func refuse(w http.ResponseWriter, status int, detail string) {
	body, _ := json.Marshal(map[string]string{"detail": detail}) // texts always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// serveAgent hands a request to its binding. The binding refuses what is wrong with its
// bytes, so that the refusal has the binding's form.
func (g *Gateway) serveAgent(w http.ResponseWriter, r *http.Request, c *call, rest string) {
	binding, version := g.choose(r, rest)
	c.version, c.trace = version, swarm.HeaderTrace(r.Header)
	c.fault = g.checkVersion(version, binding)
	body, err := wire.ReadBody(http.MaxBytesReader(w, r.Body, g.MaxBody), r.ContentLength)
	if errors.As(err, new(*http.MaxBytesError)) {
		c.fault = errors.New("the body is larger than max_body of [gateways.a2a]")
		g.recordUnread(r, c, rest, nil)
		refuse(w, http.StatusRequestEntityTooLarge, c.fault.Error())
		return
	}
	if err != nil {
		return // the host answers for a body that it could not read
	}
	c.text = body
	defer g.recordUnread(r, c, rest, body)
	if err := wire.CheckJSON(body, Name, g.MaxDepth); err != nil && len(body) > 0 {
		c.fault = a2a.NewError(a2a.ErrParseError, "the body "+err.Error())
		body = harmless(rest)
	} else if binding == g.bindings.rpcV03 {
		if err := checkRequestV03(body); err != nil {
			c.fault, binding, body = err, g.bindings.rpc, harmless(rest)
		}
	}
	inner := r.Clone(withCall(r.Context(), c))
	inner.Body = io.NopCloser(bytes.NewReader(body))
	inner.URL.Path, inner.URL.RawPath = cmp.Or(rest, "/"), ""
	binding.ServeHTTP(w, inner)
}

var errNoRequest = errors.New("it is no request of the protocol")

// recordUnread records a request that no binding could read, whose message has no line in
// the log yet.
func (g *Gateway) recordUnread(r *http.Request, c *call, rest string, text []byte) {
	if c.read.Load() || r.Method != http.MethodPost || r.Context().Err() != nil {
		return
	}
	e := gateway.Event{Caller: c.caller, Type: strings.TrimSpace(r.Method + " " + rest), Text: text}
	g.Runtime.Record(e.WithOutcome(false, cmp.Or(c.fault, errNoRequest)))
}

// checkRequestV03 refuses a method of version 1.0 in a request without the version's header,
// and a message that is not there, which the library does not expect. The methods of 0.3
// have a slash.
func checkRequestV03(body []byte) error {
	var request struct {
		Method string `json:"method"`
		Params struct {
			Message *struct{} `json:"message"`
		} `json:"params"`
	}
	err := json.Unmarshal(body, &request) // another type is the library's to refuse
	switch {
	case request.Method == "message/send" || request.Method == "message/stream":
		if err == nil && request.Params.Message == nil {
			return invalid("the request has no message")
		}
		return nil
	case request.Method == "" || strings.Contains(request.Method, "/"):
		return nil
	}
	return a2a.NewError(a2a.ErrVersionNotSupported, request.Method+" is no method of version 0.3, which a request without "+a2a.SvcParamVersion+" has: set the header "+a2a.SvcParamVersion+": "+string(a2a.Version))
}

// harmless returns a body that a binding reads without a fault, in place of one that is
// refused: the binding then asks for the call, which has the fault.
func harmless(rest string) []byte {
	if rest == "" {
		return []byte(`{"jsonrpc":"2.0","id":null,"method":"GetTask","params":{}}`)
	}
	return []byte(`{}`)
}

// serveGRPC serves requests of the gRPC service. The tenant in them names the agent.
func (g *Gateway) serveGRPC(w http.ResponseWriter, r *http.Request) {
	caller, ok := g.identify(w, r)
	if !ok {
		return
	}
	c := &call{caller: caller, version: a2a.Version, depth: g.MaxDepth, base: g.base(r), trace: swarm.HeaderTrace(r.Header), read: new(atomic.Bool)}
	defer g.recordUnread(r, c, r.URL.Path, nil)
	if v := requestedVersion(r); r.Header.Get(a2a.SvcParamVersion) != "" && v != a2a.Version {
		c.fault = a2a.NewError(a2a.ErrVersionNotSupported, "version "+string(v)+" is not served over gRPC, only "+string(a2a.Version))
	}
	g.bindings.grpc.ServeHTTP(w, r.WithContext(withCall(r.Context(), c)))
}
