package gateway_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/client"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/hosttest"
)

// askingPerson is a partner over ACP, an operator, and an action that people answer.
const askingPerson = `[actions.confirm]
source = "human"
description = "Ask a person."
parameters = { type = "object" }
[gateways.acp]
hold = "1s"
[gateways.acp.partners.acme]
ids = ["agent*"]
[[auth.keys]]
id = "acme"
role = "agent"
key = "the-token-of-acme-at-hive"
[[auth.keys]]
id = "ops"
role = "operator"
key = "` + hosttest.OperatorKey + `"
`

// TestPersonAnswersOverACP (A-020, A-042, G-025): an agent that is asked over ACP asks a
// person. The operator answers what belongs to no person here, after a restart, and his text
// is the one RESPONSE, for who waits and for who fetches what comes.
func TestPersonAnswersOverACP(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, strings.Replace(withACP(file("hive", askingPerson)), "expose = ", "actions = [\"confirm\"]\nexpose = ", 1))
	acme := acptest.Client{URL: s.URL() + "/acp/v1/messages", Token: "the-token-of-acme-at-hive"}
	q := acptest.New("REQUEST", "agentA", "boss", `[["confirm",{"order":500}],["task_complete",{"finish_message":"{{0}}"}]]`)
	later := acptest.New("REQUEST", "agentB", "boss", q.Body)
	if r, err := acme.Send(q.Text()); err != nil || r.Status != http.StatusAccepted {
		t.Fatalf("who is held for hold gets %d %s, %v", r.Status, r.Text, err)
	}
	if r, err := acme.Send(later.Text(), "Prefer", "respond-async"); err != nil || r.Status != http.StatusAccepted {
		t.Fatalf("who does not wait gets %d %s, %v", r.Status, r.Text, err)
	}
	operator := s.As(hosttest.OperatorKey)
	waiting := func() (list []client.Question) {
		t.Helper()
		list, _, err := operator.Questions(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	hosttest.Eventually(t, "both questions", func() bool { return len(waiting()) == 2 })
	if got := mailOf(t, acme, "agentB"); len(got) != 0 {
		t.Errorf("a pause is told as %q", got)
	}
	s.Restart()
	acme.URL, operator = s.URL()+"/acp/v1/messages", s.As(hosttest.OperatorKey)
	for _, question := range waiting() {
		if question.Instance != "swarm:acme" || question.Action != "confirm" || question.Arguments == nil || *question.Arguments != `{"order":500}` {
			t.Fatalf("the question is %+v", question)
		}
		if err := operator.Answer(t.Context(), question, "yes, in two weeks"); err != nil {
			t.Fatal(err)
		}
		if err := operator.Answer(t.Context(), question, "no"); err == nil {
			t.Error("a second answer was taken")
		}
	}
	hosttest.Eventually(t, "the answer for who asks again", func() bool {
		r, err := acme.Send(q.Text())
		return err == nil && r.Status == http.StatusOK && r.Message.Header.Type == "RESPONSE" && r.Message.Header.ReplyTo == q.Header.ID && r.Message.Body == "yes, in two weeks"
	})
	hosttest.Eventually(t, "the answer for who fetches", func() bool { return len(mailOf(t, acme, "agentB")) > 0 })
	if got := mailOf(t, acme, "agentB"); len(got) != 1 || got[0] != "RESPONSE yes, in two weeks" {
		t.Errorf("agentB fetches %q", got)
	}
	if n := len(s.Audited("question.answer")); n < 2 {
		t.Errorf("%d lines in the audit log", n)
	}
}

// shopToken is the token of the partner shop.
const shopToken = "the-token-of-shop-at-hive"

// shopOverACP is a partner whose agents may have any id; more are keys of its table.
func shopOverACP(more string) string {
	return `[gateways.acp]
hold = "5m"
[gateways.acp.partners.shop]
ids = ["*"]
may = ["ask", "tell"]
` + more + `
[[auth.keys]]
id = "shop"
role = "agent"
key = "` + shopToken + `"
`
}

// askingACP is a host whose agent boss writes to the partner shop; more are keys of its
// table.
func askingACP(t *testing.T, more string) *hosttest.Site {
	t.Helper()
	return hosttest.NewSite(t, withACP(file("hive", shopOverACP(more))))
}

// asked is the answer of boss to alice after it has asked a foreign agent.
func asked(t *testing.T, s *hosttest.Site, to, text string) string {
	t.Helper()
	got, err := s.As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Body: hosttest.RequestOf(to, text)})
	if err != nil {
		t.Fatal(err)
	}
	return got.Body
}

// TestAgentsOverACP (A-042, D-A4, A-028): an agent of ours asks a foreign agent. The answer
// comes in the HTTP reply, at its Location, or by a message of its own, and an ERROR is an
// answer, too.
func TestAgentsOverACP(t *testing.T) {
	t.Parallel()
	var hive *hosttest.Site
	shop := acptest.NewAgent(t, func(m acptest.Message) (*acptest.Message, int) {
		answer := m.Reply("RESPONSE", "of "+m.Body)
		switch m.Header.Receiver {
		case "agent B/ü@x":
			return &answer, 0
		case "informs":
			answer.Header.Type, answer.Header.ReplyTo = "INFORM", ""
			return &answer, 0
		case "refuses":
			answer = m.Reply("ERROR", `{"code":"sold_out","message":"nothing left"}`)
			return &answer, http.StatusConflict
		}
		go func() { // without reply_to: the conversation has one question only
			if m.Header.Receiver == "later" {
				answer.Header.ReplyTo = ""
			}
			acme := acptest.Client{URL: hive.URL() + "/acp/v1/messages", Token: shopToken}
			if r, err := acme.Send(answer.Text()); err != nil || r.Status != http.StatusAccepted {
				t.Errorf("the answer got %d %s, %v", r.Status, r.Text, err)
			}
		}()
		return nil, 0
	})
	hive = askingACP(t, "allow_private = true\nurl = \""+shop.URL+"/acp\"")
	for to, want := range map[string]string{
		"agent%20B/ü%40x@shop": "of how many?", "informs@shop": "of how many?", "later@shop": "of how many?", "calls@shop": "of how many?", "refuses@shop": "[SOLD_OUT]",
	} {
		if got := asked(t, hive, to, "how many?"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", to, got)
		}
	}
	for _, m := range shop.Got() {
		if m.Header.Sender != "boss@hive" || m.Header.Type != "REQUEST" || m.Body != "how many?" {
			t.Errorf("the shop got %+v", m)
		}
	}
}

// TestURIOverACP (A-003, G-010, G-011): an agent whose id is a URI has an address here, with
// %XX for what a name cannot have. What is sent to the address arrives under the id, and so
// does the answer to a question of the agent's.
func TestURIOverACP(t *testing.T) {
	t.Parallel()
	const uri, address = "agent://example.com/my agent?of=a@b&100%", "agent://example.com/my%20agent?of=a%40b&100%25@shop"
	shop := acptest.NewAgent(t, func(m acptest.Message) (*acptest.Message, int) {
		answer := m.Reply("RESPONSE", "seven")
		return &answer, 0
	})
	hive := askingACP(t, "allow_private = true\nurl = \""+shop.URL+"/acp\"")
	caller := acptest.Client{URL: hive.URL() + "/acp/v1/messages", Token: "the-token-of-shop-at-hive"}
	history := hosttest.Step{"history", hosttest.Args{"after": 0, "limit": 10}}
	for i, body := range []string{
		hosttest.RequestOf(address, "how many?"), hosttest.Script(history, hosttest.Step{"task_complete", hosttest.Args{"finish_message": "{{0}}"}}),
	} {
		q, want := acptest.New("REQUEST", uri, "boss", body), []string{"seven", strings.ReplaceAll(address, "&", `\u0026`)}[i]
		q.Header.ConversationID = "conv456"
		r, err := caller.Send(q.Text())
		if err != nil || r.Message == nil || r.Message.Header.Type != "RESPONSE" || r.Message.Header.Receiver != uri || !strings.Contains(r.Message.Body, want) {
			t.Errorf("got %d %s, %v; want %s", r.Status, r.Text, err, want)
		}
	}
	if got := shop.Got(); len(got) != 1 || got[0].Header.Receiver != uri || got[0].Body != "how many?" {
		t.Errorf("the shop got %+v", got)
	}
}

// TestForeignQuestionOverACP: a foreign agent that asks back about a question has its answer
// before it answers that question itself, though the question is held in the outbox.
func TestForeignQuestionOverACP(t *testing.T) {
	t.Parallel()
	var hive *hosttest.Site
	var first atomic.Pointer[acptest.Message]
	send := func(m acptest.Message) {
		acme := acptest.Client{URL: hive.URL() + "/acp/v1/messages", Token: shopToken}
		if r, err := acme.Send(m.Text()); err != nil || r.Status != http.StatusAccepted {
			t.Errorf("%s got %d %s, %v", m.Header.Type, r.Status, r.Text, err)
		}
	}
	shop := acptest.NewAgent(t, func(m acptest.Message) (*acptest.Message, int) {
		switch m.Header.Type {
		case "REQUEST":
			first.Store(&m)
			go send(m.Reply("QUERY", `[["send_response",{"target":"agentB@shop","subject":"s","body":"red"}]]`))
		case "INFORM":
			go send(first.Load().Reply("RESPONSE", "seven, since "+m.Body))
		}
		return nil, 0
	})
	hive = askingACP(t, "allow_private = true\nurl = \""+shop.URL+"/acp\"")
	if got := asked(t, hive, "agentB@shop", "how many?"); !strings.Contains(got, "seven, since red") {
		t.Errorf("answer %q", got)
	}
}

// TestHostsOverACP: an agent asks an agent of another host over ACP.
func TestHostsOverACP(t *testing.T) {
	t.Parallel()
	depot := hosttest.NewSite(t, withACP(file("depot", `[gateways.acp]
hold = "1s"
[gateways.acp.partners.hive]
ids = ["*@hive"]
[[auth.keys]]
id = "hive"
role = "agent"
key = "the-token-of-hive-at-depot"
`)))
	hive := askingACP(t, "allow_private = true\nauth_token = \"the-token-of-hive-at-depot\"\nurl = \""+depot.URL()+"/acp/v1/messages\"")
	if got := asked(t, hive, "boss@shop", "how many?"); !strings.Contains(got, "boss got") || !strings.Contains(got, "how many?") {
		t.Errorf("answer %q", got)
	}
	if got := asked(t, hive, "nobody@shop", "how many?"); !strings.Contains(got, "[UNKNOWN_RECEIVER]") {
		t.Errorf("answer %q", got)
	}
}

// querying is a swarm whose agent queries the partner shop by an action.
const querying = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
actions = ["ask_shop", "confirm", "report"]
[actions.ask_shop]
source = "gateway:acp/query"
partners = ["shop"]
[actions.confirm]
source = "gateway:acp/acknowledge"
partners = ["shop"]
[actions.report]
source = "gateway:acp/error"
partners = ["shop"]
[gateways.acp.partners.shop]
url = "%s"
allow_private = true
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
`

// TestQueryOverACP (A-023, A-024, A-025, G-060): an action writes a QUERY, its answer comes
// as mail, and comm_targets need not list the partner. Others write an ACKNOWLEDGE and an
// ERROR, which get no answer. The turns repeat from their record.
func TestQueryOverACP(t *testing.T) {
	t.Parallel()
	shop := acptest.NewAgent(t, func(m acptest.Message) (*acptest.Message, int) {
		answer := m.Reply("INFORM", m.Header.Type+" "+m.Body+" seven")
		return &answer, 0
	})
	hive := hosttest.NewSite(t, fmt.Sprintf(querying, shop.URL))
	body := hosttest.Script(hosttest.Step{"ask_shop", hosttest.Args{"agent": "stock", "message": "how many?"}}, hosttest.Step{"await_message", hosttest.Args{}})
	got, err := hive.As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Task: "t", Body: body})
	if err != nil || !strings.Contains(got.Body, "QUERY how many? seven") {
		t.Errorf("answer %+v, %v", got, err)
	}
	if refused := hive.Do(hosttest.AliceKey, "second", hosttest.Step{"ask_shop", hosttest.Args{"message": "whom?"}}); !strings.Contains(refused, "agent") {
		t.Errorf("a query to no agent: %s", refused)
	}
	hive.Do(hosttest.AliceKey, "t", hosttest.Step{"confirm", hosttest.Args{"agent": "stock", "reply_to": "msg7"}})
	hive.Do(hosttest.AliceKey, "t", hosttest.Step{"report", hosttest.Args{"agent": "stock", "reply_to": "msg7", "code": "sold_out", "message": "nothing left"}})
	for _, kind := range []string{"ACKNOWLEDGE", "ERROR"} {
		hosttest.Eventually(t, "the shop has one "+kind, func() bool {
			return len(slices.DeleteFunc(shop.Got(), func(m acptest.Message) bool { return m.Header.Type != kind || m.Header.ReplyTo != "msg7" })) == 1
		})
	}
	if refused := hive.Do(hosttest.AliceKey, "fifth", hosttest.Step{"report", hosttest.Args{"agent": "stock", "code": "Sold out!", "message": "x"}}); !strings.Contains(refused, "code") {
		t.Errorf("a code with a space: %s", refused)
	}
	if err := hive.Stop(); err != nil {
		t.Error(err)
	}
	hosttest.Replay(t, filepath.Join(hive.Dir, "swarm.toml"), hive.Data)
}
