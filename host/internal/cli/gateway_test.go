package cli

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
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
		"POST /skep/v1/partners/yard/ping": `{"partner":"yard","gateway":"acp","active":false,"latency":null,"agents":[],"error":"the broker is away"}`,
		"POST /skep/v1/partners/fair/ping": `{"partner":"fair","gateway":"acp","active":false,"latency":null,"agents":[],"error":"it has a mailbox"}`,
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
		"show none":              {exitNotFound, []string{"there is no such thing", "skep gateway list", "lists those that run"}},
		"show a2x":               {exitNotFound, []string{"there is no such thing", "did you mean `skep gateway show a2a"}},
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

// Where no file is, doctor looks at what the named host shows.
func TestDoctorGatewaysElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	url := partneredHost(t)
	for _, c := range []struct {
		vars map[string]string
		args []string
		code int
		want []string
	}{
		{map[string]string{"SKEP_URL": url}, nil, exitNonconforming, []string{"FAIL  a2a  ", "pass  a2a agents", "2 agents exposed", "pass  a2a partner shop  answers in", "no swarm.toml here: certificates, keys and public_url are not looked at"}},
		{nil, []string{"--url", url, "-o", "json"}, exitNonconforming, []string{`"failed": 1`}},
		{map[string]string{"SKEP_URL": url}, []string{"-c", "swarm.toml"}, exitNotFound, []string{"there is no file swarm.toml"}},
		{nil, nil, exitNotFound, []string{"there is no file swarm.toml"}},
	} {
		s := newShell(c.vars, append([]string{"doctor", "gateways"}, c.args...)...)
		code := Main(t.Context(), s.Env)
		printed := s.stdout.String() + s.stderr.String()
		for _, want := range c.want {
			if code != c.code || !strings.Contains(strings.Join(strings.Fields(printed), " "), strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%v: code %d, no %q in\n%s", c.args, code, want, printed)
			}
		}
	}
}

// Doctor tells what is wrong with the gateways of a file, and whether partners elsewhere
// reach the host: one that is called within the operator's network may have any address.
func TestDoctorGateways(t *testing.T) {
	t.Parallel()
	url := partneredHost(t)
	const file = `schema = 1
[swarm]
name = "hive"
entrypoint = "desk"
enable_interswarm = true
[agents.desk]
source = "file:desk.wasm"
enable_entrypoint = true
can_complete_tasks = true
expose = ["a2a"]
[server]
PUBLIC
[gateways.a2a]
sign_cards = false
[gateways.a2a.partners.PARTNER]
url = "https://shop.example/a2a/shop/orders"
PRIVATE
[gateways.mcp]
[gateways.acp.mqtt]
broker = "mqtt://127.0.0.1"
[gateways.acp.partners.yard]
topics = "acp/v1/yard"
[gateways.acp.partners.fair]
`
	for name, test := range map[string]struct {
		changes []string
		code    int
		out     []string
	}{
		"a partner elsewhere": {
			[]string{"PUBLIC", `public_url = "http://10.1.2.3:8000"`, "PARTNER", "shop", "PRIVATE", ""}, exitNonconforming,
			[]string{"FAIL  server.public_url", "http://10.1.2.3:8000, which shop cannot reach", "pass  a2a partner shop", "FAIL  mcp", "FAIL  a2a ",
				"FAIL  acp partner yard  the broker is away", "pass  acp partner fair  it has a mailbox"},
		},
		"no address": {
			[]string{"PUBLIC", "", "PARTNER", "shop", "PRIVATE", ""}, exitNonconforming, []string{"FAIL  server.public_url", "not set, which shop cannot reach"},
		},
		"a partner nearby": {
			[]string{"PUBLIC", `public_url = "http://10.1.2.3:8000"`, "PARTNER", "lab", "PRIVATE", "allow_private = true"}, exitNonconforming,
			[]string{"pass  server.public_url", "your own network only", "FAIL  a2a partner lab", "it answers 502"},
		},
		"a public address": {
			[]string{"PUBLIC", `public_url = "https://hive.example"`, "PARTNER", "shop", "PRIVATE", ""}, exitNonconforming,
			[]string{"pass  server.public_url", "https://hive.example"},
		},
	} {
		dir := t.TempDir()
		config := filepath.Join(dir, "swarm.toml")
		for path, text := range map[string]string{config: strings.NewReplacer(test.changes...).Replace(file), filepath.Join(dir, "desk.wasm"): "\x00asm\x01\x00\x00\x00"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := newShell(nil, "doctor", "gateways", "--config", config, "--url", url)
		code := Main(t.Context(), s.Env)
		printed := s.stdout.String() + s.stderr.String()
		if code != test.code {
			t.Errorf("%s: code %d\n%s", name, code, printed)
		}
		for _, part := range test.out {
			if !strings.Contains(strings.Join(strings.Fields(printed), " "), strings.Join(strings.Fields(part), " ")) {
				t.Errorf("%s: no %q in\n%s", name, part, printed)
			}
		}
	}
}
