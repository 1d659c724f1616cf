package gateway_test

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host"
	"skep/host/internal/api/audit"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/hosttest"
)

// TestPartnerIsDown: who operates a host sees in its log which partner is not reached, where
// and why, before its messages are given up; the log of messages has each attempt.
func TestPartnerIsDown(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	down := strings.Replace(file("hive", `[gateways.uamp]
did = "did:web:hive.example"
[gateways.uamp.partners.lab]
url = "http://127.0.0.1:1"
ids = ["did:web:lab.example:*"]
allow_private = true
give_up = "2s"`), `"a2a"]`, `"a2a", "uamp"]`, 1)
	s := hosttest.NewSite(t, down, func(o *host.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	got := s.Do(hosttest.AliceKey, "t1", hosttest.Step{"send_request", hosttest.Args{"target": "x@lab", "subject": "s", "body": "hello"}}, hosttest.Step{"await_message", hosttest.Args{}})
	if !strings.Contains(got, "did not take it within 2s") {
		t.Error(got)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const want = `gateway=uamp partner=lab url=http://127.0.0.1:1 recipient=x@lab task_id=t1 reason="`
	if n := strings.Count(string(text), want); n != 1 || !strings.Contains(string(text), "give_up=2s") {
		t.Errorf("%d lines about the partner, want 1:\n%s", n, text)
	}
	var failed int
	err = audit.Entries(filepath.Join(s.Data, audit.MessagesName), func(_ int64, e audit.Entry) {
		if e.Message != nil && e.Message.Realm == "lab" && e.Message.Task == "t1" && e.Outcome == "failed" && e.Reason != "" {
			failed++
		}
	}, nil)
	if err != nil || failed == 0 {
		t.Errorf("%d attempts in the log of messages: %v", failed, err)
	}
}

// TestPartnerIsRemoved: a question to a partner that a reload removes ends at once with that reason,
// and not after the partner's time for answers; one to another partner goes on.
func TestPartnerIsRemoved(t *testing.T) {
	t.Parallel()
	came, answer := make(chan struct{}, 2), make(chan struct{})
	partner := acptest.NewAgent(t, func(m acptest.Message) (*acptest.Message, int) {
		came <- struct{}{}
		<-answer
		reply := m.Reply("RESPONSE", "yes")
		return &reply, http.StatusOK
	})
	table := func(name string) string {
		return "[gateways.acp.partners." + name + "]\nurl = \"" + partner.URL + "\"\nids = [\"" + name + "-*\"]\nallow_private = true\ntimeout = \"1h\"\n"
	}
	text := strings.Replace(file("hive", "[[auth.keys]]\nid = \"ops\"\nrole = \"operator\"\nkey = \""+hosttest.OperatorKey+"\"\n[gateways.acp]\n"+table("shop")), `"a2a"]`, `"a2a", "acp"]`, 1)
	s := hosttest.NewSite(t, text+table("lab"))
	ask := func(partner string) <-chan string {
		got := make(chan string, 1)
		go func() {
			got <- s.Do(hosttest.AliceKey, partner, hosttest.Step{"send_request", hosttest.Args{"target": partner + "-1@" + partner, "subject": "s", "body": "go on?"}}, hosttest.Step{"await_message", hosttest.Args{}})
		}()
		<-came
		return got
	}
	lab, shop := ask("lab"), ask("shop")
	s.Write(text)
	if _, err := s.As(hosttest.OperatorKey).Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-lab; !strings.Contains(got, "lab") {
		t.Errorf("the question to the partner that is gone: %s", got)
	}
	close(answer)
	if got := <-shop; !strings.HasSuffix(got, "yes") {
		t.Errorf("the question to the other partner: %s", got)
	}
}
