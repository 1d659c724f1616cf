package cli

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/api/audit"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/messagelog"
)

// partneredHost is a host with one gateway, whose partner lab is down.
func partneredHost(t *testing.T) (url string) {
	t.Helper()
	const one = `{"name":"a2a","healthy":false,"detail":"no \u001b[1mkey","connections":1,"sessions":2,"streams":3,
		"agents":[{"name":"desk","description":"takes orders","version":"1.0.0","entrypoint":true,"capabilities":[]},{"name":"store","description":"","version":"","entrypoint":false,"capabilities":[]}],
		"partners":[{"name":"shop","tenant":"acme","url":"https://shop.example","ids":[],"agents":["desk"],"may":["ask","tell"]},{"name":"lab","tenant":"acme","url":"","ids":[],"agents":[],"may":[]}]}`
	answers := map[string]string{
		"GET /skep/v1/gateways": `{"gateways":[` + one + `]}`, "GET /skep/v1/gateways?tenant=acme": `{"gateways":[]}`, "GET /skep/v1/gateways/a2a": one,
		"POST /skep/v1/partners/shop/ping": `{"partner":"shop","gateway":"a2a","active":true,"latency":0.25,"agents":["orders","returns"],"error":null}`,
		"POST /skep/v1/partners/lab/ping":  `{"partner":"lab","gateway":"a2a","active":false,"latency":null,"agents":[],"error":"it answers 502"}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text, ok := answers[r.Method+" "+r.URL.RequestURI()]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			text = `{"detail":"there is no such thing"}`
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Each command prints what the host says, without its control characters, and ends with
// the code that scripts go by.
func TestGatewayCommands(t *testing.T) {
	t.Parallel()
	url := partneredHost(t)
	for line, want := range map[string]struct {
		code int
		out  []string
	}{
		"list":                   {exitOK, []string{"GATEWAY   STATE", "a2a       not well  2       2", "no"}},
		"list --tenant acme":     {exitOK, []string{"there are no gateways"}},
		"list -o json":           {exitOK, []string{`"name": "a2a"`, `"sessions": 2`}},
		"show a2a":               {exitOK, []string{"desk     users, partners", "store    partners", "shop     acme", "ask, tell", "lab      acme", "all of them"}},
		"show a2a -o json":       {exitOK, []string{`"may": [`}},
		"show none":              {exitNotFound, []string{"there is no such thing"}},
		"ping shop":              {exitOK, []string{"shop  a2a  active", "orders, returns"}},
		"ping shop -o json":      {exitOK, []string{`"error": null`}},
		"ping lab":               {exitFailed, []string{"lab  a2a  inactive", "it answers 502"}},
		"ping none":              {exitNotFound, []string{"there is no such thing"}},
		"ping":                   {exitUsage, []string{"PARTNER"}},
		"list --tenant acme -ov": {exitUsage, nil},
	} {
		s := newShell(nil, append(append([]string{"gateway"}, strings.Fields(line)...), "--url", url)...)
		code := Main(t.Context(), s.Env)
		printed := s.stdout.String() + s.stderr.String()
		if code != want.code || strings.Contains(printed, "\x1b") {
			t.Errorf("%s: code %d\n%s", line, code, printed)
		}
		for _, part := range want.out {
			if !strings.Contains(printed, part) {
				t.Errorf("%s: no %q in\n%s", line, part, printed)
			}
		}
	}
}

// The log shows the messages of partners and of users, and one user's alone.
func TestGatewayLogOfUsers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acts, err := audit.Open(filepath.Join(dir, audit.Name), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer acts.Close()
	log, err := messagelog.Open(dir, messagelog.Options{Refusals: acts, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"ann", "bob"} {
		log.Record("mcp", gateway.Event{Caller: gatewaytest.User("acme", id), Foreign: "of-" + id, Type: "tools/call", Verdict: "accepted"})
	}
	log.Record("acp", gateway.Event{Caller: gatewaytest.Realm("acme", "shop"), Foreign: "of-shop", Type: "QUERY", Verdict: "accepted"})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"": {"of-ann", "of-bob", "of-shop"}, "--user user:ann": {"of-ann"}, "--realm shop": {"of-shop"}, "--user agent:shop": nil,
	} {
		s := newShell(nil, append([]string{"gateway", "log", filepath.Join(dir, audit.MessagesName)}, strings.Fields(line)...)...)
		code := Main(t.Context(), s.Env)
		for _, id := range []string{"of-ann", "of-bob", "of-shop"} {
			if code != exitOK || strings.Contains(s.stdout.String(), id) != slices.Contains(want, id) {
				t.Errorf("%q: code %d\n%s%s", line, code, s.stdout.String(), s.stderr.String())
			}
		}
	}
}
