package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/hosttest"
)

// pageOfACP are the messages that a read of a mailbox returns.
type pageOfACP struct {
	Messages []acptest.Message `json:"messages"`
	Next     string            `json:"next"`
}

// readMailbox reads an agent's mailbox past a cursor, and waits some seconds for a message.
func readMailbox(t *testing.T, c acptest.Client, receiver, after string, wait int) (p pageOfACP) {
	t.Helper()
	r, err := c.Get(fmt.Sprintf("%s?receiver=%s&after=%s&wait=%d", c.URL, receiver, after, wait))
	if err != nil || r.Status != http.StatusOK || json.Unmarshal([]byte(r.Text), &p) != nil {
		t.Fatalf("got %d %s, %v", r.Status, r.Text, err)
	}
	return p
}

// mailOf reads an agent's mailbox as "TYPE BODY".
func mailOf(t *testing.T, c acptest.Client, agent string) (list []string) {
	t.Helper()
	for _, m := range readMailbox(t, c, agent, "", 0).Messages {
		list = append(list, m.Header.Type+" "+m.Body)
	}
	return list
}

// TestRelayOverACP (G-031): with the right relay, a message from one agent of a partner to
// another is in the mailbox, once and durable, with one hop more and else as it was.
// Nothing leaves the realm, and hops end.
func TestRelayOverACP(t *testing.T) {
	t.Parallel()
	s := hosttest.EmptySite(t)
	with := strings.Replace(strings.Replace(partnerOfACP, `"tell"]`, `"tell", "relay"]`, 1), `dsl = "file:acme.acp"`, "", 1)
	s.Write(withACP(file("hive", with)))
	s.Start()
	acme := acptest.Client{URL: s.URL() + "/acp/v1/messages", Token: "the-token-of-acme-at-hive"}
	text := func(id, to, body string, hops int) string {
		return fmt.Sprintf(`{"header":{"version":"1.0","id":%q,"sender":"agentA","receiver":%q,"type":"REQUEST","timestamp":"2026-11-23T10:00:00Z","content_type":"text/plain","x_hops":%d,"x_color":"red"},"body":%q}`, id, to, hops, body)
	}
	send := func(text string, status int) {
		t.Helper()
		if r, err := acme.Send(text); err != nil || r.Status != status {
			t.Errorf("%s\ngot %d %s, %v; want %d", text, r.Status, r.Text, err, status)
		}
	}
	send(text("r1", "agentB", "hello", 1), http.StatusAccepted)
	s.Restart()
	acme.URL = s.URL() + "/acp/v1/messages"
	send(text("r1", "agentB", "hello", 2), http.StatusAccepted) // a repeat on another way
	send(text("r1", "agentB", "other", 1), http.StatusConflict)
	send(text("r2", "agentB", "hello", 4), http.StatusBadRequest)
	send(text("r3", "stranger", "hello", 1), http.StatusNotFound)
	r, err := acme.Get(acme.URL + "?receiver=agentB&wait=0")
	var page struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err != nil || json.Unmarshal([]byte(r.Text), &page) != nil || len(page.Messages) != 1 {
		t.Fatalf("the mailbox has %d %s, %v", r.Status, r.Text, err)
	}
	var got, want any
	if json.Unmarshal(page.Messages[0], &got) != nil || json.Unmarshal([]byte(text("r1", "agentB", "hello", 2)), &want) != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the mailbox has\n%s, want\n%v", page.Messages[0], want)
	}
}

// TestMailboxOfACP: a partner without an address fetches the messages for its
// agents, and they stay until it has read past them.
func TestMailboxOfACP(t *testing.T) {
	t.Parallel()
	hive := askingACP(t, "")
	shop := acptest.Client{URL: hive.URL() + "/acp/v1/messages", Token: shopToken}
	read := func(receiver, after string, wait int) pageOfACP {
		t.Helper()
		return readMailbox(t, shop, receiver, after, wait)
	}
	answered := make(chan string, 1)
	go func() {
		got, err := hive.As(hosttest.AliceKey).PostMessage(context.Background(), client.Post{Body: hosttest.RequestOf("agentB@shop", "how many?")})
		answered <- fmt.Sprint(got.Body, err)
	}()
	first := read("agentB", "", 25)
	if len(first.Messages) != 1 || first.Messages[0].Body != "how many?" || first.Messages[0].Header.Receiver != "agentB" {
		t.Fatalf("the mailbox has %+v", first)
	}
	if again := read("agentB", "0", 0); len(again.Messages) != 1 || again.Next != first.Next {
		t.Errorf("read again it has %+v", again)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hive.URL()+"/acp/v1/events?receiver=agentB", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+shop.Token)
	events, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	if text, err := io.ReadAll(events.Body); err != nil || !strings.Contains(string(text), "id: "+first.Next+"\ndata: {") || !strings.Contains(string(text), "how many?") {
		t.Errorf("as events it has %s, %v", text, err)
	}
	if others := read("agentC", "", 0); len(others.Messages) != 0 {
		t.Errorf("another agent's has %+v", others)
	}
	if r, err := shop.Send(first.Messages[0].Reply("RESPONSE", "seven").Text()); err != nil || r.Status != http.StatusAccepted {
		t.Fatalf("the answer got %d %s, %v", r.Status, r.Text, err)
	}
	if got := <-answered; !strings.Contains(got, "seven") {
		t.Errorf("alice got %s", got)
	}
	if past := read("agentB", first.Next, 0); len(past.Messages) != 0 || past.Next != first.Next {
		t.Errorf("past it, the mailbox has %+v", past)
	}
	if past := read("agentB", "", 0); len(past.Messages) != 0 {
		t.Errorf("what was read past is there again: %+v", past)
	}
}

// TestTwoQuestionsInMailboxOfACP: an agent that asks a foreign agent twice has one
// question in the mailbox after the other: the second comes when the first has its answer.
func TestTwoQuestionsInMailboxOfACP(t *testing.T) {
	t.Parallel()
	hive := askingACP(t, "")
	shop := acptest.Client{URL: hive.URL() + "/acp/v1/messages", Token: shopToken}
	question := func(body string) hosttest.Step {
		return hosttest.Step{"send_request", hosttest.Args{"target": "agentB@shop", "subject": "s", "body": body}}
	}
	wait := hosttest.Step{"await_message", hosttest.Args{}}
	answered := make(chan string, 1)
	go func() {
		got, err := hive.As(hosttest.AliceKey).PostMessage(context.Background(), client.Post{Body: hosttest.Script(question("how many?"), question("which?"), wait)})
		answered <- fmt.Sprint(got.Body, err)
	}()
	next := ""
	for _, c := range []struct{ question, answer string }{{"how many?", hosttest.Script(wait)}, {"which?", "the red one"}} {
		page := readMailbox(t, shop, "agentB", next, 25)
		if len(page.Messages) != 1 || page.Messages[0].Body != c.question {
			t.Fatalf("the mailbox has %+v, want %q", page, c.question)
		}
		next = page.Next
		if r, err := shop.Send(page.Messages[0].Reply("RESPONSE", c.answer).Text()); err != nil || r.Status != http.StatusAccepted {
			t.Fatalf("the answer to %q got %d %s, %v", c.question, r.Status, r.Text, err)
		}
	}
	if got := <-answered; !strings.Contains(got, "the red one") {
		t.Errorf("alice got %s", got)
	}
}

// TestAskerIsAskedOverACP: an agent of ours asks who asked it, before
// it answers. A program without an address finds the question in its mailbox, and the answer,
// after a restart of the host, reaches the same task: its RESPONSE is there by then.
func TestAskerIsAskedOverACP(t *testing.T) {
	t.Parallel()
	hive := askingACP(t, "")
	shop := acptest.Client{URL: hive.URL() + "/acp/v1/messages", Token: shopToken}
	first := acptest.New("REQUEST", "agentA", "boss", hosttest.RequestOf("agentA@shop", "red or blue?"))
	first.Header.ConversationID = "conv456"
	if r, err := shop.Send(first.Text(), "Prefer", "respond-async"); err != nil || r.Status != http.StatusAccepted {
		t.Fatalf("got %d %s, %v", r.Status, r.Text, err)
	}
	page := readMailbox(t, shop, "agentA", "", 25)
	if len(page.Messages) != 1 {
		t.Fatalf("the mailbox has %+v", page)
	}
	question := page.Messages[0]
	if h := question.Header; h.Type != "REQUEST" || h.Sender != "boss@hive" || h.ConversationID != "conv456" || question.Body != "red or blue?" {
		t.Errorf("the question is %+v", question)
	}
	hive.Restart()
	shop.URL = hive.URL() + "/acp/v1/messages"
	answer := question.Reply("RESPONSE", "blue")
	for range 2 { // a repeat changes nothing
		if r, err := shop.Send(answer.Text()); err != nil || r.Status != http.StatusAccepted {
			t.Fatalf("the answer got %d %s, %v", r.Status, r.Text, err)
		}
	}
	page = readMailbox(t, shop, "agentA", page.Next, 25)
	if len(page.Messages) != 1 {
		t.Fatalf("then the mailbox has %+v", page)
	}
	wantAnswer(t, page.Messages[0], first, "RESPONSE", "blue")
	if past := readMailbox(t, shop, "agentA", page.Next, 0); len(past.Messages) != 0 {
		t.Errorf("past it the mailbox has %+v", past)
	}
}
