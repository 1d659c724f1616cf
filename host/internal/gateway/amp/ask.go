package amp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/swarm"
)

// Routing hints that the gateway reads and writes. Agents see all.
const (
	hintHops    = "hops"
	hintTrace   = "traceparent"
	hintState   = "tracestate"
	hintSubject = "subject"
)

// hopHints change on the way: a repeat may have others.
var hopHints = []string{hintHops, hintTrace, hintState}

// note is what answering a message needs.
type note struct {
	ID          string  `json:"id"`
	Token       string  `json:"token"`
	Correlation string  `json:"correlation,omitempty"`
	From        string  `json:"from,omitempty"`
	Session     string  `json:"session,omitempty"`
	Agent       string  `json:"agent"`
	Capability  string  `json:"capability"`
	Timeout     float64 `json:"timeout,omitempty"` // ms
	Callback    string  `json:"callback,omitempty"`
	Queued      bool    `json:"queued,omitempty"`
}

func readNote(x gateway.Exchange) (n note, err error) {
	if err := json.Unmarshal(x.Note, &n); err != nil {
		return n, fmt.Errorf("read the note of %q: %w", x.ID, err)
	}
	return n, nil
}

// received is what the answer to the noted message needs of it.
func (n note) received() message.Received {
	return message.Received{Token: n.Token, Message: message.Message{
		ID: n.ID, Source: message.Source{Agent: n.From}, Destination: message.Destination{Agent: n.Agent, Capability: n.Capability},
		Headers: message.Headers{Correlation: n.Correlation},
	}}
}

// deadline is when the sender of the noted message stops waiting; zero for never.
func (n note) deadline(accepted time.Time) time.Time {
	m := message.Message{}
	if n.Timeout > 0 {
		m.Headers.Timeout = &n.Timeout
	}
	return m.Deadline(accepted)
}

// askOf returns a capability request as the runtime takes it.
func askOf(in message.Received, text []byte, t target, k call) (a gateway.Ask, err error) {
	a = gateway.Ask{
		Kind: gateway.Asks, ID: in.ID, From: in.Source.Agent, Swarm: t.agent.Swarm, To: []string{t.agent.Name}, Conversation: cmp.Or(conversationOf(in, k.context), k.parent), Raw: text,
		Subject: "capability: " + k.capability, Body: compact(k.parameters), Info: infoOf(in), Hops: gateway.ExtensionHops(in.Headers.Hints[hintHops]),
		Trace: swarm.ParseTrace(gateway.ExtensionText(in.Headers.Hints[hintTrace]), gateway.ExtensionText(in.Headers.Hints[hintState])),
	}
	a.Info["expects"], a.Info["capability"] = string(message.Response), k.capability
	a.Reply = k.callback != "" || k.queued
	if k.callback != "" {
		a.Info["delegation"] = map[string]string{"parent_task_id": k.parent}
	}
	if len(k.context) > 0 {
		a.Info["context"] = k.context
	}
	if k.capability == mailCapability {
		setMail(&a, k.parameters)
	}
	if len(a.Body) > gateway.MaxText {
		a.Parts = []gateway.Part{{Name: "parameters", Type: "application/json", Data: []byte(a.Body)}}
		a.Body = ""
	}
	if a.Digest, err = in.Digest(hopHints...); err != nil {
		return a, err
	}
	n := note{
		ID: in.ID, Token: in.Token, Correlation: in.Headers.Correlation, From: in.Source.Agent, Session: in.Source.Session, Agent: nameOf(t.agent), Capability: k.capability, Callback: k.callback, Queued: k.queued,
	}
	if in.Headers.Timeout != nil {
		n.Timeout = *in.Headers.Timeout
	}
	a.Note, err = json.Marshal(n)
	return a, err
}

// setMail sets the text that mail.message brings to an agent as it is.
func setMail(a *gateway.Ask, parameters json.RawMessage) {
	var text struct{ Subject, Body string }
	_ = json.Unmarshal(parameters, &text) // it fits the schema
	a.Subject, a.Body = cmp.Or(text.Subject, gateway.Excerpt(text.Body)), text.Body
}

// conversationOf is the session of a message: its sender's, or the one of its context.
func conversationOf(in message.Received, context json.RawMessage) string {
	var of struct {
		Session string `json:"session_id"`
	}
	_ = json.Unmarshal(context, &of) // another form has none
	return cmp.Or(in.Source.Session, of.Session)
}

// infoOf is what agents see of a message besides its text.
func infoOf(in message.Received) map[string]any {
	info := map[string]any{"protocol": Name, "version": message.Version, "type": string(in.Type), "message_id": in.ID, "sender": in.Source.Agent}
	if in.Headers.Priority != nil {
		info["priority"] = *in.Headers.Priority
	}
	if in.Headers.Correlation != "" {
		info["correlation_id"] = in.Headers.Correlation
	}
	if len(in.Headers.Hints) > 0 {
		info["routing_hints"] = in.Headers.Hints
	}
	return info
}

// compact is JSON without white space.
func compact(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}
