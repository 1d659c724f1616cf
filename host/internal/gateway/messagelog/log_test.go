package messagelog_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/auth"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/messagelog"
)

// entries are the lines of a log about messages.
func entries(t *testing.T, dir, name, act string) (list []audit.Entry) {
	t.Helper()
	err := audit.Entries(filepath.Join(dir, name), func(_ int64, e audit.Entry) {
		if e.Act == act {
			list = append(list, e)
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// openLogs opens an audit log and the log of messages beside it. The end of the test closes both.
func openLogs(t *testing.T, logger *slog.Logger) (dir string, acts *audit.Log, log *messagelog.Log) {
	t.Helper()
	dir = t.TempDir()
	acts, err := audit.Open(filepath.Join(dir, audit.Name), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = acts.Close() })
	log, err = messagelog.Open(dir, messagelog.Options{Refusals: acts, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return dir, acts, log
}

// Each message has a line without its text (G-058), in the file as soon as it is recorded,
// and what was refused is in the audit log too.
func TestRecord(t *testing.T) {
	t.Parallel()
	dir, acts, log := openLogs(t, slog.New(slog.DiscardHandler))
	shop := gateway.Caller{Principal: auth.Principal{Tenant: "garden", Role: auth.Agent, ID: "shop"}, Realm: "shop"}
	log.Record("acp", gateway.Event{Caller: shop, Foreign: "m1", Type: "QUERY", Text: []byte("abc"), Verdict: "accepted", Task: "t1"})
	log.Record("acp", gateway.Event{Caller: shop, Foreign: "m2", Out: true, Verdict: "failed", Reason: "it is down"})
	log.Record("mcp", gateway.Event{
		Caller: gateway.Caller{Principal: auth.Principal{Tenant: "garden", Role: auth.User, ID: "ann"}}, Type: "tools/call", Verdict: "refused", Reason: "no such tool",
	})

	got := entries(t, dir, audit.MessagesName, messagelog.Act)
	if len(got) != 3 {
		t.Fatalf("%d lines for 3 messages: %+v", len(got), got)
	}
	// sha256 of "abc": https://csrc.nist.gov/projects/cryptographic-standards-and-guidelines/example-values
	want := audit.Message{
		Gateway: "acp", Realm: "shop", Direction: audit.In, ID: "m1", Type: "QUERY", Size: 3,
		SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", Task: "t1",
	}
	if m := *got[0].Message; m != want || got[0].Outcome != "accepted" || got[0].Tenant != "garden" || got[0].Principal != "agent:shop" {
		t.Errorf("a message came as %+v of %+v", m, got[0])
	}
	if m := *got[1].Message; m.Direction != audit.Out || m.SHA256 != "" || got[1].Reason != "it is down" {
		t.Errorf("a message left as %+v of %+v", m, got[1])
	}
	if err := acts.Close(); err != nil {
		t.Fatal(err)
	}
	refused := entries(t, dir, audit.Name, "gateway.message")
	if len(refused) != 1 || refused[0].Principal != "user:ann" || refused[0].Target != "mcp tools/call" {
		t.Errorf("the audit log has %+v", refused)
	}
}

// A flood of equal refusals is one line of the audit log and its number, and each caller's
// first message through a gateway one line.
func TestAuditLines(t *testing.T) {
	t.Parallel()
	dir, acts, log := openLogs(t, slog.New(slog.DiscardHandler))
	ann := gateway.Caller{Principal: auth.Principal{Tenant: "garden", Role: auth.User, ID: "ann"}}
	bob := gateway.Caller{Principal: auth.Principal{Tenant: "garden", Role: auth.User, ID: "bob"}}
	for range 500 {
		log.Record("mcp", gateway.Event{Caller: ann, Type: "tools/call", Verdict: "refused", Reason: "no such tool"})
		log.Record("mcp", gateway.Event{Caller: bob, Type: "tools/call", Verdict: "accepted"})
		log.Record("a2a", gateway.Event{Caller: bob, Verdict: "duplicate"})
		log.Record("a2a", gateway.Event{Caller: ann, Out: true, Verdict: "delivered"})
	}
	if err := acts.Close(); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, dir, audit.Name, "gateway.message"); len(got) != 1 || got[0].Count != 500 {
		t.Errorf("500 equal refusals are %+v", got)
	}
	got := entries(t, dir, audit.Name, "gateway.contact")
	if len(got) != 2 || got[0].Principal != "user:bob" || got[0].Target != "mcp" || got[1].Target != "a2a" {
		t.Errorf("the first contacts are %+v", got)
	}
}

// A refusal is a line of the host's log with its cause, ten a minute of one. It has no reason, which may
// quote the message, and of what the partner has named, id and type, 64 characters.
func TestRefusalLines(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	_, _, log := openLogs(t, slog.New(slog.NewJSONHandler(&text, nil)))
	shop := gateway.Caller{Principal: auth.Principal{Tenant: "garden", Role: auth.Agent, ID: "shop"}, Realm: "shop"}
	long := strings.Repeat("x", 64)
	for range 12 {
		log.Record("acp", gateway.Event{Caller: shop, Foreign: long + "planted", Type: long + "planted"}.WithOutcome(false, fmt.Errorf("planted: %w", gateway.ErrBusy)))
	}
	log.Record("acp", gateway.Event{Caller: shop, Foreign: "m2\u0085\u202e\u2028\x1b[2J", Type: "REQUEST", Verdict: "refused", Reason: "planted"})
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 11 || strings.Contains(text.String(), "planted") {
		t.Fatalf("%d lines: %s", len(lines), &text)
	}
	for _, want := range []string{`"level":"INFO"`, `"msg":"a message was refused"`, `"gateway":"acp"`, `"tenant":"garden"`, `"principal":"agent:shop"`, `"partner":"shop"`, `"message_id":"` + long + `"`, `"cause":"limit"`} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("the first line lacks %s: %s", want, lines[0])
		}
	}
	if !strings.Contains(lines[10], `"cause":"invalid"`) || !strings.Contains(lines[10], `"message_id":"m2����[2J"`) {
		t.Errorf("the last line is %s", lines[10])
	}
}
