package iacp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// record writes what became of a message into the logs.
func (g *Gateway) record(c gateway.Caller, m message.Message, text []byte, x gateway.Exchange, err error) {
	e := gateway.Event{Caller: c, Foreign: m.ID, Type: string(m.Type), Text: text, Task: x.Task.Task}
	g.Runtime.Record(e.WithOutcome(x.Duplicate, err))
}

// accept hands a message to the runtime, and to members of realms. relayed means that no
// agent of ours has it. n is the note of a message that is no duplicate.
func (g *Gateway) accept(ctx context.Context, c gateway.Caller, m message.Message, text []byte) (x gateway.Exchange, n note, relayed bool, err error) {
	if err := g.checkSender(c, m.Sender.ID); err != nil {
		return x, n, false, err
	}
	if err := g.checkSignature(c, m, text); err != nil {
		return x, n, false, err
	}
	if err := g.checkTool(c, m); err != nil {
		return x, n, false, err
	}
	if right := rightFor(m.Type); right != "" && !c.May.Has(right) {
		return x, n, false, fmt.Errorf("a %s: %s: %w", m.Type, c.Missing(Name, right), gateway.ErrDenied)
	}
	if at := m.Deadline(time.Now()); !at.IsZero() && !at.After(time.Now()) {
		return x, n, false, &fault{code: codeTimeout, reason: reasonExpired, text: "expires_at is over: the message is not delivered"}
	}
	to, err := g.recipients(c, m)
	if err != nil {
		return x, n, false, err
	}
	for _, one := range to.members {
		duplicate, err := g.relays.keep(ctx, c, one.of, one.id, m, text)
		if err != nil {
			return x, n, false, err
		}
		x.ID, x.Duplicate = m.ID, duplicate
	}
	if len(to.names) == 0 {
		return x, n, true, nil
	}
	if err := g.checkIsTool(c, m, to); err != nil {
		return x, n, false, err
	}
	if err := g.checkCircuit(ctx, c, m, to); err != nil {
		return x, n, false, err
	}
	n = note{m.ID, m.Type, m.Sender.ID, cmp.Or(m.To(), to.names[0]), m.Conversation, g.isHandedOn(c, m), m.Deadline(time.Now()).Truncate(time.Microsecond)}
	a, err := g.askOf(m, text, n)
	if err != nil {
		return x, n, false, err
	}
	a.Swarm, a.To = to.swarm, to.names
	if a.From == c.Realm {
		a.From = "" // the realm itself, which needs no ids
	}
	a.Reply = a.Kind == gateway.Asks && n.HandedOn
	isDue := m.Owed() && n.isDue()
	if isDue {
		if err := g.deadlines.save(ctx, c, m.ID, n.Until); err != nil {
			return x, n, false, err
		}
	}
	if x, err = g.Runtime.Ask(ctx, c, a); err != nil && isDue {
		g.deadlines.removeRefused(ctx, c, m.ID)
	}
	return x, n, false, err
}

// isHandedOn reports whether a hub has handed a question on. Its asker does not learn that this
// connection has ended, and does not ask again: the answer leaves through the outbox.
func (g *Gateway) isHandedOn(c gateway.Caller, m message.Message) bool {
	p, _ := g.Runtime.Partner(c.Realm)
	return m.Meta().Hops > 0 || isHub(p)
}

// checkCircuit refuses a question to an agent of ours that fails for the realm. A repeat has its
// answer in any case.
func (g *Gateway) checkCircuit(ctx context.Context, c gateway.Caller, m message.Message, to recipients) error {
	if !m.Owed() || isAboutBegun(m.Type) {
		return nil
	}
	after := g.breakers.admit(breakerKey{realmOf(c), to.swarm, to.names[0]}, time.Now())
	if after == 0 {
		return nil
	}
	if _, err := g.Runtime.Find(ctx, c, m.ID); !errors.Is(err, gateway.ErrUnknown) {
		return err
	}
	return &circuitOpenError{to.names[0], after}
}

// checkSender refuses a sender that is not the caller's. A realm without ids has one agent,
// which has its name.
func (g *Gateway) checkSender(c gateway.Caller, sender string) error {
	p, _ := g.Runtime.Partner(c.Realm)
	if len(p.IDs) > 0 && p.Owns(sender) || len(p.IDs) == 0 && sender == c.Principal.PeerSwarm() {
		return nil
	}
	return refusedf(codeDenied, "the sender %.100q is not an agent of the peer: ids of [gateways.iacp.partners.%s] has none that fits", sender, c.Realm)
}

// checkCapabilities refuses a registration with more than the partner may declare (I-073).
func (g *Gateway) checkCapabilities(c gateway.Caller, a agentInfo) error {
	p, _ := g.Runtime.Partner(c.Realm)
	may, _ := p.Options["capabilities"].([]string)
	for _, capability := range a.Capabilities {
		if len(may) > 0 && !slices.Contains(may, capability) {
			return refusedf(codeDenied, "the partner may not declare the capability %.100q", capability)
		}
	}
	return nil
}

// rightFor is the right that a type needs besides that to ask or to tell.
func rightFor(t message.Type) gateway.Right {
	switch t {
	case message.ToolRequest:
		return gateway.MayTools
	case message.WorkflowStart, message.WorkflowStatus, message.WorkflowCancel:
		return gateway.MayWorkflows
	}
	return ""
}

// note is what answering a message needs.
type note struct {
	ID           string       `json:"id"`
	Type         message.Type `json:"type"`
	Sender       string       `json:"sender"`
	Receiver     string       `json:"receiver"`
	Conversation string       `json:"conversation,omitempty"`
	// HandedOn is decided once: a reload may change what is a hub.
	HandedOn bool `json:"handed_on,omitempty"`
	// Until is when the asker waits no more, in microseconds as answers have times; zero for never.
	Until time.Time `json:"until,omitzero"`
}

// noteOf reads the note of an exchange.
func noteOf(x gateway.Exchange) (n note, err error) {
	err = json.Unmarshal(x.Note, &n)
	return n, err
}

// plainTask is the task_type of a text that reaches its agent as it is.
const plainTask = "mail.message"

// askOf returns a message as the runtime takes it, without its recipients.
func (g *Gateway) askOf(m message.Message, text []byte, n note) (a gateway.Ask, err error) {
	meta := m.Meta()
	a = gateway.Ask{
		Kind: gateway.Tells, ID: m.ID, From: m.Sender.ID, Conversation: m.Conversation, Raw: text, Hops: meta.Hops,
		Trace: swarm.ParseTrace(meta.Traceparent, meta.Tracestate), Info: infoOf(m),
	}
	if m.Owed() {
		a.Kind = gateway.Asks
	}
	if a.Subject, a.Body, err = contentOf(m); err != nil {
		return a, err
	}
	if len(a.Body) > gateway.MaxText {
		a.Parts = []gateway.Part{{Name: "payload", Type: "application/json", Data: []byte(a.Body)}}
		a.Body = ""
	}
	canonical, err := wire.Canonical(text, wire.AsSent, g.MaxDepth+1, "metadata")
	if err != nil {
		return a, err
	}
	a.Digest = sha256.Sum256(canonical)
	a.Note, err = json.Marshal(n)
	return a, err
}

// typed is the body of a message that is more than a task: as bundled:tool, bundled:workflow
// and bundled:knowledge read it, and as our agents write what is sent as it is.
type typed struct {
	Type    message.Type    `json:"message_type"`
	Payload json.RawMessage `json:"payload"`
}

// maxSubject is how much of a text is a subject, in characters.
const maxSubject = 60

// contentOf is what an agent sees of a message.
func contentOf(m message.Message) (subject, body string, err error) {
	var p struct {
		TaskType    string `json:"task_type"`
		Description string `json:"description"`
		Parameters  struct {
			Subject string `json:"subject"`
			Body    string `json:"body"`
		} `json:"parameters"`
	}
	if m.Type != message.TaskRequest {
		raw, err := json.Marshal(typed{m.Type, m.Payload})
		return string(m.Type), string(raw), err
	}
	if err := json.Unmarshal(m.Payload, &p); p.TaskType == plainTask && err == nil {
		return subjectOf(cmp.Or(p.Parameters.Subject, p.Description)), p.Parameters.Body, nil
	}
	return subjectOf(cmp.Or(p.Description, p.TaskType, string(m.Type))), string(m.Payload), nil
}

// subjectOf is the begin of a text, on one line.
func subjectOf(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if most := []rune(text); len(most) > maxSubject {
		text = string(most[:maxSubject])
	}
	if mail.Reserved(text) {
		return ""
	}
	return text
}

// infoOf is what agents see of a message besides its text.
func infoOf(m message.Message) map[string]any {
	info := map[string]any{
		"protocol": Name, "version": m.Version, "type": string(m.Type), "message_id": m.ID, "sender": m.Sender.ID, "receiver": m.To(), "timestamp": m.Timestamp,
	}
	for name, value := range map[string]string{"conversation": m.Conversation, "parent_message_id": m.Parent, "sender_name": m.Sender.Name, "priority": m.Meta().Priority} {
		if value != "" {
			info[name] = value
		}
	}
	if len(m.Sender.Capabilities) > 0 {
		info["sender_capabilities"] = m.Sender.Capabilities
	}
	return info
}
