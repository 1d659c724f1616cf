package gateway_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host"
	"skep/host/internal/api/audit"
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
