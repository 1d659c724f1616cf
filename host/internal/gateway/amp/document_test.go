package amp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/spec/mail"
)

// printed is a block that the document prints, its placeholders filled.
type printed struct {
	Lines, Form string
	// Answer is the status of the response to a request. Of a response or an error it is the
	// subject that our agent gets.
	Answer  string
	Message json.RawMessage
}

func readPrinted(t *testing.T) (list []printed) {
	t.Helper()
	raw, err := os.ReadFile("../../../../spec/gateways/amp/examples.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		t.Fatalf("%d examples: %v", len(list), err)
	}
	return list
}

// newDocumentSite is a gateway with the agents, the capabilities and the token that the
// document's examples name. Its agents answer with what they see besides the text.
func newDocumentSite(t *testing.T, changes ...func(*amp.Options)) *out {
	t.Helper()
	o := newOut(t, append([]func(*amp.Options){anyAddress}, changes...)...)
	o.p.IDs = []string{"*"}
	o.rt.AddPartner(o.p)
	acme := gatewaytest.Realm("default", "acme")
	acme.May = o.p.May
	o.rt.Admit("eyJ...", acme)
	o.rt.Hide("default", "hive", "echo") // it has text-analysis as well
	show := func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		text, err := json.Marshal(turn.Ask.Info)
		if err != nil {
			return gateway.Answer{Outcome: gateway.Failed, Body: err.Error()}
		}
		return gateway.Answer{Body: string(text)}
	}
	o.expose("destination-agent-id", show, gateway.Capability{ID: "required-capability"})
	o.expose("agent-b", show, gateway.Capability{ID: "text-analysis"}, gateway.Capability{ID: "question-answering"},
		gateway.Capability{ID: "web-search"}, gateway.Capability{ID: "data-extraction"})
	return o
}

// TestDocumentExamples (M-001, M-003, M-004, M-007, M-008, M-020, M-025, M-039, D-M2, V-M01 to V-M09):
// each block of JSON that the document prints is taken over HTTP in the default profile, with
// its placeholders filled by each word that it lists. A request has its response, and its agent
// sees the priority and the context; an event is taken; a response or an error reaches the agent
// of ours that asked. Strict refuses a request without id, timestamp or source.
func TestDocumentExamples(t *testing.T) {
	t.Parallel()
	o, strict := newDocumentSite(t), newDocumentSite(t, func(opt *amp.Options) { opt.Strict = true })
	wantStatus(t, strict.control(t, "registration", registration("agent-123")), http.StatusOK)
	for _, x := range readPrinted(t) {
		var m amptest.Message
		if err := json.Unmarshal(x.Message, &m); err != nil {
			t.Fatal(err)
		}
		switch m.Message.Type {
		case "response", "error":
			o.wantDelivered(t, x, m)
			continue
		case "event":
			if r := o.postPrinted(t, x); r.Status != http.StatusAccepted || r.Text != "" {
				t.Errorf("lines %s: %d %s", x.Lines, r.Status, r.Text)
			}
		default:
			o.wantAnswered(t, x, m)
		}
		if x.Lines != "58-82" {
			wantFault(t, strict.postPrinted(t, x), http.StatusBadRequest, "INVALID_SCHEMA", "MALFORMED")
		}
	}
}

// postPrinted posts a block. The printed context is a change of one that there is, with a time
// to come.
func (o *out) postPrinted(t *testing.T, x printed) amptest.Reply {
	t.Helper()
	text, client := string(x.Message), o.Client
	switch x.Form {
	case "context":
		made := amptest.New("request", "agent-123", "context", amptest.Object{"operation": "create"})
		id, _ := contextIn(t, o.send(t, made))["id"].(string)
		text = strings.NewReplacer("context-uuid", id, "2025-01-27T11:00:00Z", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)).Replace(text)
	case "headers":
		client.Token = "" // the message has the credential
	}
	r, err := client.Post(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantAnswered fails unless a printed request has its response. What an agent answers is what
// it has seen.
func (o *out) wantAnswered(t *testing.T, x printed, m amptest.Message) {
	t.Helper()
	r := o.postPrinted(t, x)
	status := http.StatusOK
	if x.Answer == "partial" {
		status = http.StatusAccepted
	}
	if r.Message == nil || r.Status != status || r.Message.Message.Type != "response" || r.Message.Message.Payload["status"] != x.Answer {
		t.Errorf("lines %s: %d %s, want %s", x.Lines, r.Status, r.Text, x.Answer)
		return
	}
	seen := r.Message.Result()
	if seen["protocol"] != amp.Name {
		return // no agent has answered, but the gateway
	}
	for name, want := range map[string]any{
		"context": m.Message.Payload["context"], "priority": m.Message.Headers["priority"], "correlation_id": m.Message.Headers["correlation_id"],
	} {
		if !reflect.DeepEqual(seen[name], want) {
			t.Errorf("lines %s: the agent sees the %s %v, not %v", x.Lines, name, seen[name], want)
		}
	}
}

// wantDelivered fails unless a printed response or error, as the partner's reply to a question
// of ours, reaches the agent that asked.
func (o *out) wantDelivered(t *testing.T, x printed, m amptest.Message) {
	t.Helper()
	o.does(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(x.Message) })
	got := o.g.Carry(t.Context(), o.p, outgoing(cmp.Or(m.Header("correlation_id"), "m-1"), mail.Request, "x"))
	asked := o.rt.take()
	if got.State != gateway.Taken || len(asked) != 1 || asked[0].Kind != gateway.Answers || asked[0].Subject != x.Answer {
		t.Errorf("lines %s: carried %+v, delivered %+v", x.Lines, got, asked)
	}
}
