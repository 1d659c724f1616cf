package amp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
)

// ask sends a question, and returns when its answer was delivered.
func (a *attempt) ask(ctx context.Context) error {
	arrived, end := a.g.waiting.begin(a.caller, a.m.ID, &a.d)
	defer end()
	ctx, cancel := gateway.EndWhen(ctx, arrived) // an answer by a message of its own ends the request, too
	defer cancel()
	got, err := a.send(ctx)
	if err == nil && got.location != "" && !a.calledBack {
		got, err = a.poll(ctx, got)
	}
	if err == nil && got.message != nil {
		err = a.deliver(ctx, *got.message)
	} else if err == nil { // it comes by a message of its own
		select {
		case <-arrived:
		case <-got.lost:
			err = errLost
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	select {
	case <-arrived:
		return nil
	default:
		return err
	}
}

// notifyAll sends an event to all agents of the partner that have registered here. It returns false
// where none has: then the partner's own mesh has them.
func (a *attempt) notifyAll(ctx context.Context) (done bool, err error) {
	agents, err := a.g.otherAgents(ctx, a.caller, "")
	if err != nil || len(agents) == 0 {
		return false, err
	}
	if err := a.compose(ctx); err != nil {
		return false, err
	}
	return true, a.g.notify(ctx, a.p, a.g.Token, a.m, agents)
}

// tell sends an event. A partner that refuses it does so by a message.
func (a *attempt) tell(ctx context.Context) error {
	got, err := a.send(ctx)
	if err != nil || got.message == nil || got.message.Type != message.Error {
		return err
	}
	code, _, text, err := contentOf(*got.message)
	if err != nil {
		return err
	}
	return gateway.Refuse("the partner answers [%s] %s", code, gateway.Excerpt(text))
}

// fullPause is the time after which the runtime is given an answer again that it had no room for.
const fullPause = time.Second

// got is what a partner replies to a request.
type got struct {
	message  *message.Received // nil for none
	location string            // where the answer will be, empty if that was not told
	wait     time.Duration     // before it is looked for there
	// lost is closed when the connection ends on which the answer would come; nil for none.
	lost <-chan struct{}
}

// errLost means that the connection ended on which an answer would have come.
var errLost = errors.New("the connection was lost before the answer")

// send writes the message to the recipient's socket, or posts it to the partner.
func (a *attempt) send(ctx context.Context) (got, error) {
	a.tried = true
	if a.socket != nil {
		err := a.socket.conn.deliver(ctx, a.text)
		a.taken = err == nil
		return got{lost: a.socket.ctx.Done()}, err
	}
	if a.queued {
		err := a.g.queue.publish(ctx, a.g.Token, a.m, a.text)
		a.taken = err == nil
		return got{}, err
	}
	reply, err := a.g.post(ctx, a.p, a.m.Type, a.text, a.d.Trace)
	a.taken = err == nil
	return reply, err
}

// post sends a message of a type to a partner, by the binding of its table, and reads the reply.
func (g *Gateway) post(ctx context.Context, p gateway.Partner, kind message.Type, text []byte, trace swarm.Trace) (got, error) {
	if isCalledByGRPC(p) {
		return g.call(ctx, p, kind, text, trace)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(text))
	if err != nil {
		return got{}, gateway.Refuse("the url of %s cannot be called: %v", p.Name, err)
	}
	req.Header.Set("Content-Type", "application/json")
	trace.Fields(req.Header.Set)
	return g.fetch(p, req)
}

// poll looks for the answer at the place that the partner has told.
func (a *attempt) poll(ctx context.Context, told got) (found got, err error) {
	a.trouble, err = gateway.Poll(ctx, gateway.Look{Location: told.location, Wait: told.wait}, func(req *http.Request) (gateway.Look, error) {
		var err error
		found, err = a.g.fetch(a.p, req)
		return gateway.Look{Done: found.message != nil, Location: found.location, Wait: found.wait}, err
	})
	return found, err
}

// errTooLarge is the error of a reply that is longer than a message may be.
var errTooLarge = errors.New("it is larger than max_body of [gateways.amp]")

// fetch sends a request and reads the message in its answer. An error message is an answer,
// but for those after which the same message is sent again.
func (g *Gateway) fetch(p gateway.Partner, req *http.Request) (reply got, err error) {
	resp, err := p.Client.Do(req)
	if err != nil {
		return reply, err
	}
	defer resp.Body.Close()
	text, err := wire.ReadBody(io.LimitReader(resp.Body, g.MaxBody+1), resp.ContentLength)
	if err != nil {
		return reply, err
	}
	status := resp.StatusCode
	if status == http.StatusTooManyRequests || status >= 500 && status != http.StatusGatewayTimeout {
		return reply, gateway.StatusOf(resp)
	}
	in, readErr := (message.Reader{Depth: g.MaxDepth}).Read(text)
	if int64(len(text)) > g.MaxBody {
		readErr = errTooLarge
	}
	switch {
	case readErr == nil && (status != http.StatusAccepted || !isInterim(in)):
		if err := checkAnswer(p, in); err != nil {
			return reply, err
		}
		return got{message: &in}, nil
	case status >= http.StatusMultipleChoices:
		return reply, gateway.StatusOf(resp)
	case status == http.StatusAccepted || len(bytes.TrimSpace(text)) == 0:
		if at := resp.Header.Get("Location"); at != "" {
			reply.wait = gateway.StatusOf(resp).RetryAfter
			reply.location, err = gateway.ResolveLocation(req.URL, at)
		}
		return reply, err
	}
	return reply, gateway.Refuse("the partner's answer is no message: %v", readErr)
}

// isInterim reports whether another response follows this one (D-M7).
func isInterim(in message.Received) bool {
	var p struct {
		Status   string `json:"status"`
		Metadata struct {
			Final *bool  `json:"final"`
			State string `json:"state"`
		} `json:"metadata"`
	}
	if in.Type != message.Response || json.Unmarshal(in.Payload, &p) != nil || p.Status != statusPartial {
		return false
	}
	return p.Metadata.State == "accepted" || p.Metadata.Final != nil && !*p.Metadata.Final
}

// checkAnswer refuses an answer that is not signed with the key that we share.
func checkAnswer(p gateway.Partner, in message.Received) error {
	if len(p.HMACKey) == 0 {
		return nil
	}
	if err := in.Verify(p.HMACKey); err != nil {
		return gateway.Refuse("the answer of %s does not count: %v", p.Name, err)
	}
	return nil
}

// deliver brings the answer in the reply to our request to the agent that asked.
func (a *attempt) deliver(ctx context.Context, in message.Received) error {
	if of := in.Headers.Correlation; of != "" && of != a.m.ID {
		return gateway.Refuse("the partner answers another message, %.100q", of)
	}
	if in.Type != message.Response && in.Type != message.Error {
		return gateway.Refuse("the partner answers with a %s", in.Type)
	}
	for {
		_, err := a.g.answer(context.WithoutCancel(ctx), a.caller, in, &a.d, a.m.ID, false)
		if !errors.Is(err, gateway.ErrBusy) || !gateway.Pause(ctx, fullPause) {
			return err
		}
	}
}

// answerKey begins the runtime's id of an answer. No message has such an id: they are
// printable.
const answerKey = "answer\x1e"

// answer brings an answer to a question of ours to the agent that asked, once. sent is set
// for one that came as a message of its own.
func (g *Gateway) answer(ctx context.Context, c gateway.Caller, in message.Received, d *swarm.Delivery, id string, sent bool) (gateway.Exchange, error) {
	code, subject, body, err := contentOf(in)
	if err != nil {
		return gateway.Exchange{}, err
	}
	a := gateway.Ask{
		Kind: gateway.Answers, ID: answerKey + id, Swarm: d.Wrapper.SourceSwarm, Of: d, Sent: sent, Subject: subject, Body: body, Info: infoOf(in),
		Digest: sha256.Sum256(in.Payload),
	}
	maps.Copy(a.Info, usageOf(in))
	if code != "" {
		a.Subject, a.Info["error"] = "["+code+"]", code
	}
	if len(a.Body) > gateway.MaxText {
		a.Parts, a.Body = []gateway.Part{{Name: "result", Type: "application/json", Data: []byte(a.Body)}}, ""
	}
	x, err := g.Runtime.Ask(ctx, c, a)
	if errors.Is(err, gateway.ErrConflict) || errors.Is(err, gateway.ErrUnknown) {
		err = nil // an attempt before has brought it, or our task does not wait any more
	}
	return x, err
}

// contentOf is what our agent gets of an answer: the result, or the code and the text of
// what went wrong (D-M6).
func contentOf(in message.Received) (code, subject, body string, err error) {
	var p struct {
		Status   string                     `json:"status"`
		Result   json.RawMessage            `json:"result"`
		Metadata map[string]json.RawMessage `json:"metadata"`
		Error    message.ErrorBody          `json:"error"`
	}
	if err := json.Unmarshal(in.Payload, &p); err != nil {
		return "", "", "", message.Faultf(message.InvalidSchema, message.ReasonMalformed, "message.payload is no answer")
	}
	if in.Type == message.Error {
		return codeOf(string(p.Error.Code)), "", p.Error.Message, nil
	}
	body = textOf(p.Result)
	switch p.Status {
	case statusFailed:
		if why := gateway.ExtensionText(p.Metadata["message"]); why != "" {
			body = why
		}
		return "FAILED", "", body, nil
	case statusPartial:
		return "", "[PARTIAL]", body, nil
	}
	return "", gateway.ExtensionText(p.Metadata["subject"]), body, nil
}

// textOf is a result as a text: the one that it has alone, else its JSON.
func textOf(result json.RawMessage) string {
	var text string
	var members map[string]json.RawMessage
	if json.Unmarshal(result, &text) == nil {
		return text
	}
	if json.Unmarshal(result, &members) == nil && len(members) == 1 && json.Unmarshal(members["text"], &text) == nil {
		return text
	}
	return compact(result)
}

// codeOf is a code as subjects have it.
func codeOf(code string) string {
	if code == "" || len(code) > 40 || strings.ContainsAny(code, " []\n") {
		return "ERROR"
	}
	return strings.ToUpper(code)
}

// Discover implements [gateway.Gateway]: the agents that the partner has registered here, or
// that have spoken on a WebSocket that is open, and the agents of its own registry.
func (g *Gateway) Discover(ctx context.Context, p gateway.Partner) ([]gateway.ForeignAgent, error) {
	list, err := g.registeredAgents(ctx, p)
	names, open, openErr := g.sockets.Probe(ctx, p.Caller())
	for _, id := range names {
		name, nameErr := gateway.AgentName(id)
		if nameErr == nil && !slices.ContainsFunc(list, func(a gateway.ForeignAgent) bool { return a.Name == name }) {
			list = append(list, gateway.ForeignAgent{Name: name})
		}
	}
	switch {
	case openErr != nil:
		return nil, openErr
	case isQueued(p):
		return list, g.queue.state()
	case err != nil:
		return nil, err
	case p.URL != "" && p.Client != nil:
		asked, err := g.askRegistry(ctx, p)
		if failed := g.joins.state(p.Caller()); failed != nil && err == nil {
			err = fmt.Errorf("agents of ours are not registered with it: %w", failed)
		}
		return append(list, asked...), err
	case len(list) == 0 && !open:
		return nil, fmt.Errorf("it has no url and no WebSocket open, and has registered no agent: agents of ours cannot write to it")
	}
	return list, nil
}

// askRegistry asks the partner's registry. A partner without one has no agents to list.
func (g *Gateway) askRegistry(ctx context.Context, p gateway.Partner) ([]gateway.ForeignAgent, error) {
	in, err := g.askMesh(ctx, p, message.Message{
		ID: ownID("discover", p.Caller(), timestamp(time.Now())), Destination: message.Destination{Agent: registryAgent, Capability: discoveryCapability},
		Payload: wire.MustEncode(map[string]any{"query": map[string]any{}}),
	}, swarm.Trace{})
	if err != nil || in == nil {
		return nil, err
	}
	list, err := foreignAgents(*in)
	if errors.Is(err, errCredentialRefused) {
		err = fmt.Errorf("%w: look at auth_token in [gateways.amp.partners.%s]", err, p.Name)
	}
	return list, err
}

// errCredentialRefused is wrapped by the error of a partner that refuses the credential of ours.
var errCredentialRefused = errors.New(string(message.AuthenticationFailed))

// askMesh sends a request to the partner's mesh, and returns the message in the reply; nil for none.
func (g *Gateway) askMesh(ctx context.Context, p gateway.Partner, m message.Message, trace swarm.Trace) (*message.Received, error) {
	m.Type, m.Timestamp = message.Request, timestamp(time.Now())
	text, err := g.write(p.Caller(), g.Token, m)
	if err != nil {
		return nil, err
	}
	reply, err := g.post(ctx, p, m.Type, text, trace)
	return reply.message, err
}

// foreignAgents are the agents that a registry lists.
func foreignAgents(in message.Received) ([]gateway.ForeignAgent, error) {
	var p struct {
		Error  message.ErrorBody `json:"error"`
		Result struct {
			Agents []struct {
				Agent struct {
					ID, Version string
				} `json:"agent"`
				Capabilities []described `json:"capabilities"`
			} `json:"agents"`
		} `json:"result"`
	}
	if err := json.Unmarshal(in.Payload, &p); err != nil {
		return nil, fmt.Errorf("its list of agents cannot be read: %w", err)
	}
	if in.Type == message.Error && p.Error.Code != message.AgentNotFound && p.Error.Code != message.CapabilityNotFound {
		return nil, registryRefusal(p.Error)
	}
	list := []gateway.ForeignAgent{}
	for _, a := range p.Result.Agents {
		name, err := gateway.AgentName(a.Agent.ID)
		if err != nil {
			continue // no agent of ours could write to it
		}
		list = append(list, gateway.ForeignAgent{Name: name, Version: a.Agent.Version, Capabilities: capabilitiesOfForeign(a.Capabilities)})
	}
	return list, nil
}

// registryRefusal is the error of a registry that refuses to list its agents.
func registryRefusal(e message.ErrorBody) error {
	if e.Code == message.AuthenticationFailed && e.Details["reason"] == message.ReasonCredential {
		return fmt.Errorf("[%w] %s", errCredentialRefused, e.Message)
	}
	return fmt.Errorf("[%s] %s", codeOf(string(e.Code)), e.Message)
}
