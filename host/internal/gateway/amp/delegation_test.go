package amp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// writtenBy is an outbox message that an action has written.
func writtenBy(id string, kind mail.Type, info string) swarm.Delivery {
	d := outgoing(id, kind, "")
	d.Wrapper.Payload.RoutingInfo = json.RawMessage(`{"remote_swarm":"acme","gateway":{"protocol":"amp",` + info + `}}`)
	return d
}

const digs = `"type":"delegate","capability":"data-extraction","parameters":{"from":"page"}`

// callingBack is a gateway whose partner acme takes what is delegated to it. came has the callbacks.
func callingBack(t *testing.T, changes ...func(*amp.Options)) (o *out, came <-chan string) {
	t.Helper()
	callbacks := make(chan string, 10)
	o = newOut(t, append(changes, func(opt *amp.Options) { opt.PublicURL = "https://hive.example/" })...)
	o.does(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m, err := amptest.Parse(text)
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		delegation, _ := m.Message.Payload["delegation"].(amptest.Object)
		subtask, _ := delegation["subtask"].(amptest.Object)
		callback, _ := subtask["completion_callback"].(string)
		w.Header().Set("Location", "/no-place-to-look") // who is called back does not look there
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, m.Reply("response", amptest.Object{"status": "partial", "result": amptest.Object{}, "metadata": amptest.Object{"state": "accepted", "final": false}}).Text())
		callbacks <- callback
	})
	return o, callbacks
}

// callBack sends a message to a callback of the gateway, whose address partners see as
// https://hive.example.
func (o *out) callBack(t *testing.T, token, callback string, m amptest.Message) amptest.Reply {
	t.Helper()
	path, ours := strings.CutPrefix(callback, "https://hive.example/")
	if !ours {
		t.Fatalf("the callback is %q", callback)
	}
	r, err := amptest.Client{URL: o.server.URL + "/" + path, Token: token}.Send(m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// resultFor is an answer to a message, with a status.
func resultFor(id, status string, result any) amptest.Message {
	m := amptest.New("response", "agent-1", "boss@hive", amptest.Object{"status": status, "result": result})
	m.Message.Headers["correlation_id"] = id
	return m
}

// TestDelegates (M-034, M-035): an agent of ours delegates a subtask of its task with a callback.
// What is not the last answer is shown as progress, the first last one is brought to the agent, and
// a repeat changes nothing.
func TestDelegates(t *testing.T) {
	t.Parallel()
	o, came := callingBack(t)
	done := make(chan gateway.Carried, 1)
	go func() { done <- o.g.Carry(t.Context(), o.p, writtenBy("m1", mail.Request, digs)) }()
	callback := <-came
	sent, err := amptest.Parse([]byte(o.came()[0]))
	if err != nil {
		t.Fatal(err)
	}
	wantMemory(t, "what is delegated", json.RawMessage(amptest.Message{Message: sent.Message}.Text()), amptest.Message{Message: func() amptest.Body {
		b := sent.Message
		b.Type, b.Source.AgentID, b.Destination.AgentID, b.Destination.Capability = "request", "boss@hive", "agent-1", "data-extraction"
		b.Payload = amptest.Object{"delegation": amptest.Object{"parent_task_id": "6f1c0e1a-52f0-4a0b-9d55-0c6f7d0b1a11", "subtask": amptest.Object{
			"capability": "data-extraction", "parameters": amptest.Object{"from": "page"}, "completion_callback": "https://hive.example/amp/v1/callbacks/m1",
		}}}
		return b
	}()}.Text())
	half := resultFor("m1", "partial", amptest.Object{"text": "half of it"})
	half.Message.Payload["metadata"] = amptest.Object{"final": false}
	if r := o.callBack(t, token, callback, half); r.Status != http.StatusAccepted {
		t.Errorf("progress: %d %s", r.Status, r.Text)
	}
	if shown := o.rt.Shown(); len(shown) != 1 || shown[0].Piece.Kind != gateway.Progress || shown[0].Piece.Text != "half of it" {
		t.Errorf("shown %+v", shown)
	}
	last := resultFor("m1", "success", amptest.Object{"text": "all of it"})
	last.Message.Payload["metadata"] = amptest.Object{"model_used": "gpt-4", "tokens_consumed": 150}
	for range 2 {
		if r := o.callBack(t, token, callback, last); r.Status != http.StatusAccepted {
			t.Errorf("the answer: %d %s", r.Status, r.Text)
		}
	}
	if got := <-done; got.State != gateway.Taken {
		t.Errorf("carried %+v", got)
	}
	asked := o.rt.take()
	for _, a := range asked {
		if a.Kind != gateway.Answers || a.Body != "all of it" || a.ID != asked[0].ID || a.Of == nil || a.Of.Wrapper.Payload.ID != "request-m1" || !a.Sent {
			t.Errorf("brought %+v", a)
		}
		if a.Info["model_used"] != "gpt-4" || a.Info["tokens_consumed"] != int64(150) {
			t.Errorf("brought with %+v", a.Info)
		}
	}
	if len(asked) != 2 || len(o.came()) != 1 {
		t.Errorf("%d answers, %d requests", len(asked), len(o.came()))
	}
}

// TestDelegatesToAny (M-020, M-034): a subtask for any agent names the capability and no agent.
func TestDelegatesToAny(t *testing.T) {
	t.Parallel()
	o, came := callingBack(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan gateway.Carried, 1)
	go func() {
		done <- o.g.Carry(ctx, o.p, writtenBy("m1", mail.Request, strings.Replace(digs, "delegate", "delegate_to_any", 1)))
	}()
	<-came
	cancel()
	<-done
	sent, err := amptest.Parse([]byte(o.came()[0]))
	if err != nil {
		t.Fatal(err)
	}
	delegation, _ := sent.Message.Payload["delegation"].(amptest.Object)
	if to := sent.Message.Destination; to.AgentID != "" || to.Capability != "data-extraction" || delegation["subtask"] == nil {
		t.Errorf("sent %s", o.came()[0])
	}
}

// TestCallbackAfterRestart (M-035): an answer that comes before the question is under way again, as
// after a start of the host, is brought to the agent that has delegated.
func TestCallbackAfterRestart(t *testing.T) {
	t.Parallel()
	o, came := callingBack(t, func(opt *amp.Options) { opt.Token = "AIP" })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan gateway.Carried, 1)
	go func() { done <- o.g.Carry(ctx, o.p, writtenBy("m 1", mail.Request, digs)) }()
	callback := <-came
	cancel()
	<-done
	if r := o.callBack(t, token, callback, resultFor("m 1", "failed", amptest.Object{})); r.Status != http.StatusAccepted {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Subject != "[FAILED]" || asked[0].Of.Task.Tenant != "default" {
		t.Errorf("brought %+v", asked)
	}
}

// TestCallbackRefused (M-035, V-M13, G-056): a callback counts from the partner alone to which the
// subtask was delegated, for its own message, and as an answer.
func TestCallbackRefused(t *testing.T) {
	t.Parallel()
	o, came := callingBack(t)
	o.admit("rival-token", gateway.Partner{Name: "rival", IDs: []string{"agent*"}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan gateway.Carried, 1)
	go func() { done <- o.g.Carry(ctx, o.p, writtenBy("m1", mail.Request, digs)) }()
	callback := <-came
	answer := resultFor("m1", "success", amptest.Object{"text": "x"})
	spoofed := resultFor("m1", "success", amptest.Object{"text": "x"})
	spoofed.Message.Source.AgentID = "stranger"
	for name, c := range map[string]struct {
		token, callback string
		m               amptest.Message
		status          int
		code, reason    string
	}{
		"no credential":    {"", callback, answer, 401, "AUTHENTICATION_FAILED", "CREDENTIAL"},
		"a wrong one":      {"guessed", callback, answer, 401, "AUTHENTICATION_FAILED", "CREDENTIAL"},
		"a user":           {"user-token", callback, answer, 403, "AUTHENTICATION_FAILED", "FORBIDDEN"},
		"another partner":  {"rival-token", callback, answer, 404, "AGENT_NOT_FOUND", "MESSAGE_NOT_FOUND"},
		"another sender":   {token, callback, spoofed, 403, "AUTHENTICATION_FAILED", "FORBIDDEN"},
		"another callback": {token, callback + "2", resultFor("", "success", "x"), 404, "AGENT_NOT_FOUND", "MESSAGE_NOT_FOUND"},
		"no callback":      {token, strings.TrimSuffix(callback, "m1"), resultFor("", "success", "x"), 404, "AGENT_NOT_FOUND", "MESSAGE_NOT_FOUND"},
		"another message":  {token, callback, resultFor("m2", "success", "x"), 400, "INVALID_SCHEMA", "MALFORMED"},
		"a request":        {token, callback, amptest.Mail("agent-1", "echo", "x"), 400, "INVALID_SCHEMA", "MALFORMED"},
		"an event":         {token, callback, amptest.New("event", "agent-1", "echo", amptest.Object{"event_type": "x"}), 400, "INVALID_SCHEMA", "MALFORMED"},
	} {
		t.Log(name)
		wantFault(t, o.callBack(t, c.token, c.callback, c.m), c.status, c.code, c.reason)
	}
	cancel()
	if got := <-done; got.State == gateway.Taken {
		t.Errorf("carried %+v", got)
	}
	if asked := o.rt.take(); len(asked) != 0 || len(o.rt.Shown()) != 0 {
		t.Errorf("brought %+v", asked)
	}
}

// TestDelegatesWithoutCallback (M-036): where the host's address is not known the subtask has no
// callback, and the reply is its answer.
func TestDelegatesWithoutCallback(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	o.replies(http.StatusOK, func(m amptest.Message) amptest.Message { return m.Reply("response", amptest.Result("done")) })
	if got := o.g.Carry(t.Context(), o.p, writtenBy("m1", mail.Request, digs)); got.State != gateway.Taken {
		t.Fatalf("carried %+v", got)
	}
	if came := o.came(); len(came) != 1 || !strings.Contains(came[0], `"delegation":{`) || strings.Contains(came[0], "completion_callback") {
		t.Errorf("sent %s", came)
	}
	if asked := o.rt.take(); len(asked) != 1 || asked[0].Body != "done" {
		t.Errorf("brought %+v", asked)
	}
	if got := o.g.Carry(t.Context(), o.p, writtenBy("m2", mail.Request, `"type":"delegate"`)); got.State != gateway.Refused {
		t.Errorf("without a capability: %+v", got)
	}
}

// TestTells (M-038, G-060): an agent of ours sends an event of its own type, to one agent or to all.
// An event that the partner refuses was not delivered.
func TestTells(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	o.does(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	for id, info := range map[string]string{
		"one": `"type":"event","event_type":"stock.low","data":{"left":3,"event_type":"x"}`, "all": `"type":"event_to_all","event_type":"stock.low","data":{"left":3}`,
	} {
		if got := o.g.Carry(t.Context(), o.p, writtenBy(id, mail.Broadcast, info)); got.State != gateway.Taken {
			t.Fatalf("%s: %+v", id, got)
		}
	}
	for _, text := range o.came() {
		m, err := amptest.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		wantTo := map[string]string{"one": "agent-1", "all": ""}[m.Message.ID]
		payload, _ := json.Marshal(m.Message.Payload)
		if m.Message.Type != "event" || m.Message.Destination.AgentID != wantTo || string(payload) != `{"event_type":"stock.low","left":3}` {
			t.Errorf("sent %s", text)
		}
	}
	o.replies(http.StatusForbidden, func(m amptest.Message) amptest.Message {
		return m.Reply("error", amptest.Error("AUTHENTICATION_FAILED", "you may not tell"))
	})
	if got := o.g.Carry(t.Context(), o.p, writtenBy("x", mail.Broadcast, `"type":"event","event_type":"stock.low"`)); got.State != gateway.Refused || !strings.Contains(got.Reason, "you may not tell") {
		t.Errorf("refused: %+v", got)
	}
}

// TestProgressOfAnswers (D-M7): an answer that is not the last one shows how far its agent is; one
// that says only that the question was taken shows nothing.
func TestProgressOfAnswers(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	sent := make(chan struct{})
	o.does(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		close(sent)
	})
	done := make(chan gateway.Carried, 1)
	go func() { done <- o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "x")) }()
	<-sent
	for _, c := range []struct{ result, metadata amptest.Object }{
		{amptest.Object{}, amptest.Object{"final": false}},
		{amptest.Object{}, amptest.Object{"state": "accepted"}},
		{amptest.Object{"text": "half"}, amptest.Object{"final": false}},
		{amptest.Object{}, amptest.Object{"final": false, "message": "nearly"}},
	} {
		m := resultFor("m1", "partial", c.result)
		m.Message.Payload["metadata"] = c.metadata
		if r := o.send(t, m); r.Status != http.StatusAccepted {
			t.Errorf("got %d %s", r.Status, r.Text)
		}
	}
	if shown := o.rt.Shown(); len(shown) != 2 || shown[0].Piece.Text != "half" || shown[1].Piece.Text != "nearly" {
		t.Errorf("shown %+v", shown)
	}
	if r := o.send(t, resultFor("m1", "success", "whole")); r.Status != http.StatusAccepted {
		t.Errorf("got %d %s", r.Status, r.Text)
	}
	if got := <-done; got.State != gateway.Taken {
		t.Errorf("carried %+v", got)
	}
}
