package rest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
	"skep/host/internal/peer/registry"
	"skep/host/internal/swarm"
)

// Both paths, both names, nulls, and the defaults (R-066 to R-068, G-07).
func TestRegisterSwarm_X05_X06_X08(t *testing.T) {
	t.Parallel()
	book := newFakeRegistry()
	h := newTestHost(t, func(h *testHost) { h.opt.Registry = book })
	const url = "https://depot.example"
	for _, c := range []struct {
		path, body, want string
		asked            registry.Request
	}{
		{"/swarms", `{"name":"depot","base_url":"https://depot.example"}`, `{"status":"registered","swarm_name":"depot"}`,
			registry.Request{Name: "depot", BaseURL: url, Volatile: true}},
		{"/swarms", `{"name":"depot","base_url":"https://depot.example","auth_token":null,"volatile":null,"metadata":null,"more":1}`, `{"status":"registered","swarm_name":"depot"}`,
			registry.Request{Name: "depot", BaseURL: url, Volatile: true}},
		{"/swarms/register", `{"swarm_name":"depot","base_url":"https://depot.example","volatile":false,"auth_token":"k","metadata":{"a":[1]}}`,
			`{"status":"registered","swarm_name":"depot","auth_token_ref":"${SWARM_AUTH_TOKEN_DEPOT}"}`,
			registry.Request{Name: "depot", BaseURL: url, Token: "k", Metadata: json.RawMessage(`{"a":[1]}`)}},
		{"/swarms/register", `{"name":"a","swarm_name":"b","base_url":"https://depot.example"}`, `{"status":"registered","swarm_name":"a"}`,
			registry.Request{Name: "a", BaseURL: url, Volatile: true}},
	} {
		a := h.do(request{method: "POST", path: c.path, token: adminToken, body: c.body})
		if a.status != http.StatusOK || a.body != c.want {
			t.Errorf("%s %s: %d %s, want %s", c.path, c.body, a.status, a.body, c.want)
		}
		if diff := cmp.Diff(c.asked, book.asked[len(book.asked)-1]); diff != "" {
			t.Errorf("%s\n%s", c.body, diff)
		}
	}
}

// The registry belongs to the host: a tenant's admin cannot change it. Its
// internal errors are not shown.
func TestRegisterSwarmRefused(t *testing.T) {
	t.Parallel()
	keys, err := auth.NewKeys([]auth.Key{
		auth.NewKey(auth.Principal{Tenant: "acme", Role: auth.Admin, ID: "ada"}, adminToken),
		auth.NewKey(auth.Principal{Tenant: swarm.DefaultTenant, Role: auth.Admin, ID: "ada"}, operatorToken),
	})
	if err != nil {
		t.Fatal(err)
	}
	book := newFakeRegistry()
	book.err = errors.New("disk on fire")
	h := rest.New(failingRuntime{}, keys, rest.Options{Swarm: "hive", Registry: book})
	q := request{method: "POST", path: "/swarms", token: adminToken, body: `{"name":"a","base_url":"https://a.example"}`}
	if a := serve(t, h, q); a.status != http.StatusUnauthorized || len(book.asked) != 0 {
		t.Errorf("a tenant's admin: %d %s", a.status, a.body)
	}
	q.token = operatorToken
	if a := serve(t, h, q); a.status != http.StatusInternalServerError || strings.Contains(a.body, "fire") {
		t.Errorf("a broken disk: %d %s", a.status, a.body)
	}
}

// The list has the local swarm, then the public ones in their order, with what
// the contract names and nothing of how they are reached (R-070 to R-074, S-18).
func TestSwarmsList(t *testing.T) {
	t.Parallel()
	latency := 0.25
	book := newFakeRegistry(
		registry.Entry{Name: "depot", BaseURL: "https://depot.example", Version: "1.3", TokenRef: "${SWARM_AUTH_TOKEN_DEPOT}",
			LastSeen: time.Unix(1e9, 0), Latency: &latency, Description: "parts", Keywords: []string{"k"}, Public: true, Active: true,
			Metadata: json.RawMessage(`{"a":1}`), Volatile: true},
		registry.Entry{Name: "hidden", BaseURL: "https://hidden.example"},
		registry.Entry{Name: "silent", BaseURL: "https://silent.example", Public: true},
	)
	h := newTestHost(t, func(h *testHost) { h.opt.Registry, h.def.Public = book, true })
	a := h.do(request{path: "/swarms", token: "-"})
	var got struct{ Swarms []json.RawMessage }
	a.json(t, &got)
	want := []string{
		"hive",
		`{"swarm_name":"depot","base_url":"https://depot.example","version":"1.3","last_seen":"2001-09-09T01:46:40.000000+00:00","is_active":true,"latency":0.25,"swarm_description":"parts","keywords":["k"],"metadata":{"a":1}}`,
		`{"swarm_name":"silent","base_url":"https://silent.example","version":"","last_seen":null,"is_active":false,"latency":null,"swarm_description":"","keywords":[],"metadata":null}`,
	}
	if len(got.Swarms) != 3 || !strings.Contains(string(got.Swarms[0]), `"swarm_name":"hive"`) {
		t.Fatalf("%s", a.body)
	}
	for i := 1; i < 3; i++ {
		if string(got.Swarms[i]) != want[i] {
			t.Errorf("%s, want %s", got.Swarms[i], want[i])
		}
	}
	if strings.Contains(a.body, "SWARM_AUTH_TOKEN") || strings.Contains(a.body, "volatile") || strings.Contains(a.body, "hidden") {
		t.Errorf("the list tells too much: %s", a.body)
	}
}

// Everybody may ask for the list, so others cannot make it as large as they
// like: it ends in time, and begins as always.
func TestSwarmsListIsBounded(t *testing.T) {
	t.Parallel()
	var all []registry.Entry
	for i := range 1000 {
		all = append(all, registry.Entry{Name: fmt.Sprint("s", i), BaseURL: "https://x.example", Public: true,
			Metadata: json.RawMessage(`{"a":"` + strings.Repeat("x", 16<<10) + `"}`)})
	}
	h := newTestHost(t, func(h *testHost) { h.opt.Registry, h.def.Public = newFakeRegistry(all...), true })
	a := h.do(request{path: "/swarms", token: "-"})
	var got struct{ Swarms []struct{ Swarm_name string } }
	a.json(t, &got)
	if len(a.body) > 257<<10 || len(got.Swarms) != 16 || got.Swarms[0].Swarm_name != "hive" || got.Swarms[1].Swarm_name != "s0" {
		t.Errorf("%d bytes, %d swarms", len(a.body), len(got.Swarms))
	}
}

// A registered swarm is forgotten on the word of the host's admins; what an
// operator alone may remove is the registry's to say.
func TestRemovePeer(t *testing.T) {
	t.Parallel()
	ears, book := &auditRecorder{}, newFakeRegistry()
	h := rest.New(failingRuntime{}, newKeys(t), rest.Options{Swarm: "hive", Registry: book, Audit: ears})
	for _, c := range []struct {
		name, token string
		status      int
		body        string
	}{
		{"depot", adminToken, 200, `{"status":"removed","swarm_name":"depot"}`},
		{"nobody", adminToken, 404, detail("swarm 'nobody' is not registered")},
		{"fixed", operatorToken, 409, detail("swarm 'fixed' stands in swarm.toml")},
		{"bound", adminToken, 409, detail("only an operator removes it")},
		{"bound", operatorToken, 200, `{"status":"removed","swarm_name":"bound"}`},
	} {
		q := request{method: "DELETE", path: "/skep/v1/peers/" + c.name, token: c.token}
		if a := serve(t, h, q); a.status != c.status || a.body != c.body {
			t.Errorf("%s: %d %s, want %d %s", c.name, a.status, a.body, c.status, c.body)
		}
	}
	if heard := ears.recorded(); len(heard) != 5 || heard[0] != "done|swarm.remove|depot https://x.example|default|admin:ada|" {
		t.Errorf("%q", heard)
	}
	book.err = errors.New("disk on fire")
	q := request{method: "DELETE", path: "/skep/v1/peers/depot", token: adminToken}
	if a := serve(t, h, q); a.status != 500 || strings.Contains(a.body, "fire") {
		t.Errorf("a broken disk: %d %s", a.status, a.body)
	}
	if a := serve(t, rest.New(failingRuntime{}, newKeys(t), rest.Options{Swarm: "hive"}), q); a.status != 503 {
		t.Errorf("without a registry: %d %s", a.status, a.body)
	}
}

// A tenant's admin removes nothing of the host's.
func TestRemovePeerOfTheHost(t *testing.T) {
	t.Parallel()
	keys, err := auth.NewKeys([]auth.Key{auth.NewKey(auth.Principal{Tenant: "acme", Role: auth.Admin, ID: "ada"}, adminToken)})
	if err != nil {
		t.Fatal(err)
	}
	h := rest.New(failingRuntime{}, keys, rest.Options{Swarm: "hive", Registry: newFakeRegistry()})
	if a := serve(t, h, request{method: "DELETE", path: "/skep/v1/peers/depot", token: adminToken}); a.status != http.StatusUnauthorized {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A ping is for the host's admins; a swarm that is not well is an answer too.
func TestPingPeer(t *testing.T) {
	t.Parallel()
	ears, book := &auditRecorder{}, newFakeRegistry()
	h := rest.New(failingRuntime{}, newKeys(t), rest.Options{Swarm: "hive", Registry: book, Audit: ears})
	for _, c := range []struct {
		name, token string
		status      int
		body        string
	}{
		{"depot", adminToken, 200, `{"swarm_name":"depot","active":true,"latency":0.25,"version":"1.3","last_seen":"2001-09-09T01:46:40.000000+00:00","error":null}`},
		{"silent", operatorToken, 200, `{"swarm_name":"silent","active":false,"latency":null,"version":"","last_seen":null,"error":"it answers 502 Bad Gateway"}`},
		{"nobody", adminToken, 404, detail("swarm 'nobody' is not registered")},
	} {
		a := serve(t, h, request{method: "POST", path: "/skep/v1/peers/" + c.name + "/ping", token: c.token})
		if a.status != c.status || a.body != c.body {
			t.Errorf("%s: %d %s, want %d %s", c.name, a.status, a.body, c.status, c.body)
		}
	}
	if heard := ears.recorded(); len(heard) != 0 {
		t.Errorf("%q", heard)
	}
	q := request{method: "POST", path: "/skep/v1/peers/depot/ping", token: adminToken}
	if a := serve(t, rest.New(failingRuntime{}, newKeys(t), rest.Options{Swarm: "hive"}), q); a.status != 503 {
		t.Errorf("without a registry: %d %s", a.status, a.body)
	}
	keys, err := auth.NewKeys([]auth.Key{auth.NewKey(auth.Principal{Tenant: "acme", Role: auth.Admin, ID: "ada"}, adminToken)})
	if err != nil {
		t.Fatal(err)
	}
	if a := serve(t, rest.New(failingRuntime{}, keys, rest.Options{Swarm: "hive", Registry: book}), q); a.status != http.StatusUnauthorized {
		t.Errorf("a tenant's admin: %d %s", a.status, a.body)
	}
}

// Admins see of every swarm how it is and where the entry comes from.
func TestListPeers(t *testing.T) {
	t.Parallel()
	book := newFakeRegistry(
		registry.Entry{Name: "depot", BaseURL: "https://depot.example", TokenRef: "${SWARM_AUTH_TOKEN_DEPOT}", Entrypoint: "chief",
			Since: time.Unix(1e9, 0), LastError: "it answers 502 Bad Gateway", Volatile: true},
		registry.Entry{Name: "found", BaseURL: "https://found.example", Volatile: true, Discovered: true},
	)
	h := rest.New(failingRuntime{}, newKeys(t), rest.Options{
		Swarm: "hive", Registry: book, CheckPeer: func(swarm string) error { return errors.New("no token for " + swarm) },
	})
	q := request{path: "/skep/v1/peers", token: adminToken}
	a := serve(t, h, q)
	judge(t, q, a)
	want := `{"peers":[{"swarm_name":"depot","base_url":"https://depot.example","version":"","last_seen":null,"is_active":false,"latency":null,"swarm_description":"","keywords":[],"metadata":null,` +
		`"entrypoint":"chief","since":"2001-09-09T01:46:40.000000+00:00","error":"it answers 502 Bad Gateway","public":false,"volatile":true,"fixed":false,"discovered":false,"letters_error":"no token for depot"},` +
		`{"swarm_name":"found","base_url":"https://found.example","version":"","last_seen":null,"is_active":false,"latency":null,"swarm_description":"","keywords":[],"metadata":null,` +
		`"entrypoint":"","since":null,"error":null,"public":false,"volatile":true,"fixed":false,"discovered":true,"letters_error":null}]}`
	if a.status != http.StatusOK || a.body != want {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := serve(t, h, request{path: "/skep/v1/peers", token: aliceToken}); a.status != http.StatusUnauthorized {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A definition is handed on with who sent it, and dumped under its name.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	var took []string
	h := newTestHost(t, func(h *testHost) { h.opt.Definitions = fakeDefinitions{&took} })
	a := h.do(request{method: "POST", path: "/swarms/load", token: adminToken, body: `{"json":"{\"swarm\":{}}","more":null}`})
	if a.status != http.StatusOK || a.body != `{"status":"success","swarm_name":"hive"}` {
		t.Errorf("%d %s", a.status, a.body)
	}
	if diff := cmp.Diff([]string{`default default/admin:ada {"swarm":{}}`}, took); diff != "" {
		t.Error(diff)
	}
	if a := h.do(request{path: "/swarms/dump", token: adminToken}); a.status != http.StatusOK || a.body != `{"status":"dumped","swarm_name":"hive"}` {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Registering a swarm is audited, also when it fails; what cannot be audited is
// not answered.
func TestRegisterSwarmIsAudited(t *testing.T) {
	t.Parallel()
	ears := &auditRecorder{}
	h := rest.New(failingRuntime{}, newKeys(t), rest.Options{Swarm: "hive", Registry: newFakeRegistry(), Audit: ears})
	q := request{method: "POST", path: "/swarms", token: adminToken}
	for _, name := range []string{"depot", "fixed"} {
		q.body = text(obj{"name": name, "base_url": "https://x.example", "auth_token": "hidden"})
		serve(t, h, q)
	}
	for _, url := range []string{"https://joe:planted@x.example/a", "planted:planted@x.example", "https://joe:planted@x example"} {
		q.body = text(obj{"name": "depot", "base_url": url})
		serve(t, h, q)
	}
	want := []string{
		"done|swarm.register|depot https://x.example|default|admin:ada|",
		"refused|swarm.register|fixed https://x.example|default|admin:ada|swarm 'fixed' stands in swarm.toml",
		"done|swarm.register|depot https://x.example/a|default|admin:ada|",
		"refused|swarm.register|depot x.example|default|admin:ada|base_url must be as in https://depot.example",
		"done|swarm.register|depot https://x example|default|admin:ada|",
	}
	if diff := cmp.Diff(want, ears.recorded()); diff != "" {
		t.Error(diff)
	}
	ears.fail = errors.New("disk full")
	q.body = text(obj{"name": "depot", "base_url": "https://x.example"})
	if a := serve(t, h, q); a.status != http.StatusInternalServerError {
		t.Errorf("without an audit: %d %s", a.status, a.body)
	}
}
