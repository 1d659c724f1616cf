package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
)

// emptyTokenStore is a token store that keeps nothing: the memory of auth.Tokens does
// for one life of a host.
type emptyTokenStore struct{}

func (emptyTokenStore) Tokens(context.Context) ([]auth.IssuedToken, error)     { return nil, nil }
func (emptyTokenStore) AddToken(context.Context, auth.IssuedToken) error       { return nil }
func (emptyTokenStore) UpdateTokens(context.Context, []auth.IssuedToken) error { return nil }
func (emptyTokenStore) DropTokens(context.Context, []string) error             { return nil }

func openTokens(t testing.TB) *auth.Tokens {
	t.Helper()
	tokens, err := auth.OpenTokens(t.Context(), emptyTokenStore{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// presetTokens has one token with a fixed id that can be revoked again and again,
// and one principal with too many.
type presetTokens struct{ *auth.Tokens }

const paperID = "0b9f2f1c-52a4-4c0e-9d4e-6f0f3b1c8a11"

func (p presetTokens) one() auth.IssuedToken {
	return auth.IssuedToken{ID: paperID, Principal: auth.Principal{Tenant: swarm.DefaultTenant, Role: auth.User, ID: "alice"}}
}

func (p presetTokens) Get(id string) (auth.IssuedToken, error) {
	if id == paperID {
		return p.one(), nil
	}
	return p.Tokens.Get(id)
}

func (p presetTokens) Revoke(ctx context.Context, id string) (auth.IssuedToken, error) {
	if id == paperID {
		return p.one(), nil
	}
	return p.Tokens.Revoke(ctx, id)
}

func (p presetTokens) Issue(ctx context.Context, who auth.Principal, life time.Duration, label, by string) (string, auth.IssuedToken, error) {
	if who.ID == "greedy" {
		return "", auth.IssuedToken{}, auth.ErrTooManyTokens
	}
	return p.Tokens.Issue(ctx, who, life, label, by)
}

// auditRecorder is an audit that remembers.
type auditRecorder struct {
	mu   sync.Mutex
	all  []audit.Entry
	fail error
}

func (e *auditRecorder) Record(x audit.Entry) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, x)
	return e.fail
}

func (e *auditRecorder) RecordRefusal(x audit.Entry) {
	x.Outcome = audit.Refused
	_ = e.Record(x)
}

// recorded returns the entries since the last call, as lines.
func (e *auditRecorder) recorded() (lines []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.all {
		lines = append(lines, strings.Join([]string{x.Outcome, x.Act, x.Target, x.Tenant, x.Principal, x.Reason}, "|"))
	}
	e.all = nil
	return lines
}

// tokenHost is a test host of two tenants, with tokens and an audit log.
type tokenHost struct {
	*testHost
	tokens *auth.Tokens
	ears   *auditRecorder
}

const acmeAdmin = "admin-of-acme-00001"

func newTokenHost(t *testing.T, change ...func(*testHost)) *tokenHost {
	g := &tokenHost{tokens: openTokens(t), ears: &auditRecorder{}}
	g.testHost = newTestHost(t, append([]func(*testHost){func(h *testHost) {
		acme := h.def
		acme.Tenant = "acme"
		h.also = append(h.also, acme)
		h.opt.Tokens, h.opt.Audit = g.tokens, g.ears
		keys, err := auth.NewKeys([]auth.Key{
			auth.NewKey(auth.Principal{Role: auth.Operator, ID: "root"}, operatorToken),
			auth.NewKey(auth.Principal{Role: auth.Admin, ID: "ada"}, adminToken),
			auth.NewKey(auth.Principal{Role: auth.User, ID: "alice"}, aliceToken),
			auth.NewKey(auth.Principal{Role: auth.Agent, ID: "depot"}, agentToken),
			auth.NewKey(auth.Principal{Tenant: "acme", Role: auth.Admin, ID: "ann"}, acmeAdmin),
		})
		if err != nil {
			t.Fatal(err)
		}
		h.known = auth.Chain{keys, g.tokens}
	}}, change...)...)
	return g
}

// createdToken is a token as it was answered.
type createdToken struct {
	Token, ID, Tenant, Role, Principal, Peer, State string
	Expires                                         *string
}

func (g *tokenHost) make(token string, wish obj) (answer, createdToken) {
	g.t.Helper()
	raw, _ := json.Marshal(wish)
	a := g.do(request{method: "POST", path: "/skep/v1/tokens", token: token, body: string(raw)})
	var m createdToken
	a.json(g.t, &m)
	return a, m
}

func (g *tokenHost) whoami(token string) answer { return g.do(request{path: "/whoami", token: token}) }

// Who may have which tokens made: rows are callers, columns roles and tenants.
func TestTokenRights(t *testing.T) {
	t.Parallel()
	g := newTokenHost(t)
	for _, c := range []struct {
		caller, role, tenant string
		want                 int
	}{
		{operatorToken, "user", "", 201}, {operatorToken, "agent", "acme", 201}, {operatorToken, "admin", "acme", 201},
		{operatorToken, "operator", "", 401}, {operatorToken, "user", "nowhere", 404}, {operatorToken, "root", "", 400},
		{adminToken, "user", "", 201}, {adminToken, "agent", "default", 201}, {adminToken, "admin", "", 401},
		{adminToken, "operator", "", 401}, {adminToken, "user", "acme", 404}, {adminToken, "user", "nowhere", 404},
		{acmeAdmin, "user", "", 201}, {acmeAdmin, "user", "default", 404}, {acmeAdmin, "admin", "", 401},
		{aliceToken, "user", "", 401}, {agentToken, "agent", "", 401}, {"-", "user", "", 401},
	} {
		a, m := g.make(c.caller, obj{"role": c.role, "id": "bob", "tenant": c.tenant})
		if a.status != c.want {
			t.Errorf("%s makes %s of %q: %d %s, want %d", c.caller, c.role, c.tenant, a.status, a.body, c.want)
		}
		if a.status == http.StatusCreated {
			if who := g.whoami(m.Token); c.role != "agent" && !strings.Contains(who.body, `"bob"`) {
				t.Errorf("its token: %d %s", who.status, who.body)
			}
			if a.header.Get("Cache-Control") != "no-store" {
				t.Error("a token may be cached")
			}
		}
	}
}

// A token made by a made admin's token does no more than its maker could.
func TestTokenChain(t *testing.T) {
	t.Parallel()
	g := newTokenHost(t)
	_, admin := g.make(operatorToken, obj{"role": "admin", "id": "ada2", "tenant": "acme"})
	if a, m := g.make(admin.Token, obj{"role": "user", "id": "u"}); a.status != 201 || m.Tenant != "acme" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a, _ := g.make(admin.Token, obj{"role": "user", "id": "u", "tenant": "default"}); a.status != 404 {
		t.Errorf("of another tenant: %d %s", a.status, a.body)
	}
	for caller, want := range map[string]int{acmeAdmin: 401, adminToken: 404, operatorToken: 200} {
		a := g.do(request{method: "DELETE", path: "/skep/v1/tokens/" + admin.ID, token: caller})
		if a.status != want {
			t.Errorf("%s revokes an admin's: %d %s, want %d", caller, a.status, a.body, want)
		}
	}
}

func TestTokenLife(t *testing.T) {
	t.Parallel()
	g := newTokenHost(t)
	for ttl, want := range map[any]int{
		nil: 201, 0: 201, 3600: 201, json.Number("1.0"): 201, json.Number("36e2"): 201, -1: 400, 1 << 40: 400, json.Number("1e300"): 400, "1h": 400, 1.5: 400, true: 400,
	} {
		a, m := g.make(adminToken, obj{"role": "user", "id": "bob", "ttl_seconds": ttl})
		if a.status != want {
			t.Errorf("ttl %v: %d %s, want %d", ttl, a.status, a.body, want)
		}
		if a.status == 201 && (m.Expires == nil) != (ttl == 0) {
			t.Errorf("ttl %v: expires %v", ttl, m.Expires)
		}
	}
}

func TestTokenRequests(t *testing.T) {
	t.Parallel()
	g := newTokenHost(t)
	for body, want := range map[string]string{
		`{"id":"a"}`:                  "role is required",
		`{"role":"user"}`:             "id is required",
		`{"role":"user","id":"a b"}`:  "id must be",
		`{"role":"user","id":"a\nb"}`: "id must be",
		`{"role":"user","id":"a@b"}`:  "id must be",
		`{"role":"user","id":"a/b"}`:  "id must be",
		`{"role":"user","id":"` + strings.Repeat("a", 129) + `"}`:             "id must be",
		`{"role":"user","id":"a","peer":"depot"}`:                             "peer is for tokens of role agent",
		`{"role":"agent","id":"a","peer":"a@b"}`:                              "peer must be the name",
		`{"role":"user","id":"a","label":"a\nb"}`:                             "label must consist of",
		`{"role":"user","id":"a","label":"` + strings.Repeat("x", 129) + `"}`: "label has 129 bytes",
		`{"role":1,"id":"a"}`:                                                 "role must be a string",
		`[]`:                                                                  "must be a JSON object",
	} {
		a := g.do(request{method: "POST", path: "/skep/v1/tokens", token: adminToken, body: body})
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %q", body, a.status, a.body, want)
		}
	}
	a, m := g.make(adminToken, obj{"role": "agent", "id": "k2", "peer": "harbor"})
	if a.status != 201 || m.Peer != "harbor" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestListTokens(t *testing.T) {
	t.Parallel()
	g := newTokenHost(t, withAcme)
	for i := range 5 {
		g.make(adminToken, obj{"role": "user", "id": fmt.Sprint("u", i)})
	}
	_, foreign := g.make(acmeAdmin, obj{"role": "user", "id": "x"})
	list := func(token, query string) (ids []string, next string) {
		t.Helper()
		a := g.do(request{path: "/skep/v1/tokens" + query, token: token})
		var page struct {
			Tokens []createdToken
			Next   *string
		}
		a.json(t, &page)
		for _, m := range page.Tokens {
			ids = append(ids, m.Principal)
			if m.Token != "" || strings.Contains(a.body, "skep_") {
				t.Errorf("the text is listed: %s", a.body)
			}
		}
		if page.Next != nil {
			next = *page.Next
		}
		return ids, next
	}
	var all []string
	after := ""
	for pages := 1; ; pages++ {
		ids, next := list(adminToken, "?limit=2&after="+after)
		all = append(all, ids...)
		if after = next; after == "" {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
	}
	if got := strings.Join(all, " "); got != "u0 u1 u2 u3 u4" {
		t.Errorf("an admin sees %s", got)
	}
	if ids, _ := list(acmeAdmin, "?tenant=acme"); len(ids) != 1 || ids[0] != "x" {
		t.Errorf("another's admin sees %q", ids)
	}
	// A tenant of others is one that is not there.
	for _, tenant := range []string{"default", "nowhere"} {
		a := g.do(request{path: "/skep/v1/tokens?tenant=" + tenant, token: acmeAdmin})
		if a.status != http.StatusNotFound || a.body != detail("tenant '"+tenant+"' not found") {
			t.Errorf("tokens of %s: %d %s", tenant, a.status, a.body)
		}
	}
	if ids, _ := list(operatorToken, ""); len(ids) != 6 {
		t.Errorf("an operator sees %q", ids)
	}
	if ids, _ := list(operatorToken, "?tenant=acme"); len(ids) != 1 {
		t.Errorf("an operator sees %q of acme", ids)
	}
	// One of another tenant is no page of this one.
	if a := g.do(request{path: "/skep/v1/tokens?after=" + foreign.ID, token: adminToken}); a.status != 400 {
		t.Errorf("after a foreign token: %d %s", a.status, a.body)
	}
}

// A revoked token opens nothing, and streams that it opened end.
func TestRevokeEndsStreams(t *testing.T) {
	t.Parallel()
	g := newTokenHost(t, func(h *testHost) { h.opt.Ping = 10 * time.Millisecond })
	_, m := g.make(adminToken, obj{"role": "user", "id": "carol"})
	body := `{"task_id":"t","body":` + fmt.Sprintf("%q", calls("gate", obj{"name": "never"})) + `,"stream":true}`
	post := g.send(t.Context(), request{method: "POST", path: "/message", token: m.Token, body: body})
	follow := g.send(t.Context(), request{path: "/skep/v1/tasks/t/events", token: m.Token})
	if post.StatusCode != 200 || follow.StatusCode != 200 {
		t.Fatalf("%d, %d", post.StatusCode, follow.StatusCode)
	}
	if a := g.do(request{method: "DELETE", path: "/skep/v1/tokens/" + m.ID, token: adminToken}); a.status != 200 || !strings.Contains(a.body, `"state":"revoked"`) {
		t.Fatalf("revoke: %d %s", a.status, a.body)
	}
	posted := events(t, read(t, post).body)
	if last := posted[len(posted)-1]; last.name != "task_error" || !strings.Contains(last.data, "not valid any more") {
		t.Errorf("the post's stream ends with %+v", last)
	}
	_ = read(t, follow)
	if a := g.whoami(m.Token); a.status != 401 || a.body != detail("invalid API key") {
		t.Errorf("%d %s", a.status, a.body)
	}
	heard := strings.Join(g.ears.recorded(), "\n")
	for _, want := range []string{
		"done|token.create|default/user:carol " + m.ID + "|default|admin:ada|",
		"done|token.revoke|default/user:carol " + m.ID + "|default|admin:ada|",
		"refused|stream|POST /message|default|user:carol|the token is not valid any more",
		"refused|stream|GET /skep/v1/tasks/{task_id}/events|default|user:carol|",
		"refused|request|GET /whoami|||the token " + m.ID + " is revoked",
	} {
		if !strings.Contains(heard, want) {
			t.Errorf("the audit lacks %q:\n%s", want, heard)
		}
	}
	if strings.Contains(heard, m.Token) {
		t.Error("the audit shows a token")
	}
}

// A revoked token stays as it is and is audited once.
func TestRevokeTwice(t *testing.T) {
	t.Parallel()
	g := newTokenHost(t)
	_, m := g.make(adminToken, obj{"role": "user", "id": "carol"})
	g.ears.recorded()
	for _, want := range []int{1, 0} {
		a := g.do(request{method: "DELETE", path: "/skep/v1/tokens/" + m.ID, token: adminToken})
		if got := g.ears.recorded(); a.status != 200 || !strings.Contains(a.body, `"state":"revoked"`) || len(got) != want {
			t.Errorf("%d %s; the audit heard %q", a.status, a.body, got)
		}
	}
}

// No admin gets an operator's id: MAIL has both as one role.
func TestOperatorsIDs(t *testing.T) {
	t.Parallel()
	g := newTokenHost(t, func(h *testHost) {
		h.opt.Operators = auth.Operators{{Tenant: swarm.DefaultTenant, Role: auth.Operator, ID: "root"}}
	})
	for _, c := range []struct {
		wish obj
		want int
	}{
		{obj{"role": "admin", "id": "root"}, 409},
		{obj{"role": "admin", "id": "root", "tenant": "acme"}, 201},
		{obj{"role": "user", "id": "root"}, 201},
		{obj{"role": "admin", "id": "ada"}, 201},
	} {
		if a, _ := g.make(operatorToken, c.wish); a.status != c.want {
			t.Errorf("%v: %d %s", c.wish, a.status, a.body)
		}
	}
}

// A busy stream's token is checked too.
func TestRevokeEndsBusyStreams(t *testing.T) {
	t.Parallel()
	now := &manualClock{at: time.Unix(1e9, 0)}
	g := newTokenHost(t, func(h *testHost) { h.opt.Now = now.now })
	_, m := g.make(adminToken, obj{"role": "user", "id": "carol", "ttl_seconds": 0})
	g.do(request{method: "POST", path: "/message", token: m.Token,
		body:   `{"task_id":"t","body":` + fmt.Sprintf("%q", calls("gate", obj{"name": "go"}, "task_complete", obj{"finish_message": "secret"})) + `}`,
		header: http.Header{"Prefer": {"respond-async"}}})
	follow := g.send(t.Context(), request{path: "/skep/v1/tasks/t/events", token: m.Token})
	g.do(request{method: "DELETE", path: "/skep/v1/tokens/" + m.ID, token: adminToken})
	now.move(time.Minute)
	g.script.open("go")
	if body := read(t, follow).body; strings.Contains(body, "event: task_complete") {
		t.Errorf("a revoked reader got %s", body)
	}
}

// manualClock is a clock that the test moves.
type manualClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *manualClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *manualClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// What cannot be recorded is not answered as if it could.
func TestAuditFails(t *testing.T) {
	t.Parallel()
	g := newTokenHost(t, func(h *testHost) { h.limits.Quarantine = quarantineStub{"math"} })
	g.ears.fail = fmt.Errorf("disk on fire")
	for _, q := range []request{
		{method: "POST", path: "/skep/v1/tokens", token: adminToken, body: `{"role":"user","id":"x"}`},
		{method: "POST", path: "/health", token: adminToken, body: `{"status":"bad"}`},
		{method: "POST", path: "/skep/v1/agents/math/release", token: operatorToken},
	} {
		if a := g.do(q); a.status != http.StatusInternalServerError || strings.Contains(a.body, "skep_") {
			t.Errorf("%s: %d %s", q.path, a.status, a.body)
		}
	}
	if a := g.do(request{path: "/health", token: "-"}); strings.Contains(a.body, "bad") {
		t.Errorf("the health is %s", a.body)
	}
}

// Every refusal is audited with caller, target and reason.
func TestRefusalsAreAudited(t *testing.T) {
	t.Parallel()
	g := newTokenHost(t, func(h *testHost) { h.opt.Rate = auth.Rate{Requests: 2, Per: time.Hour} })
	_, foreign := g.make(acmeAdmin, obj{"role": "user", "id": "x"})
	g.ears.recorded()
	for _, c := range []struct {
		q    request
		want string
	}{
		{request{path: "/whoami", token: "-"}, "refused|request|GET /whoami|||no API key provided"},
		{request{path: "/whoami", token: "nobody"}, "refused|request|GET /whoami|||invalid API key"},
		{request{path: "/nowhere", token: "-"}, "refused|request|no route|||too many requests"},
		{request{path: "/whoami", token: agentToken}, "refused|request|GET /whoami|default|agent:depot|invalid role"},
		{request{method: "DELETE", path: "/skep/v1/tokens/" + foreign.ID, token: adminToken},
			"refused|request|DELETE /skep/v1/tokens/{token_id}|default|admin:ada|token " + foreign.ID + " is of tenant acme"},
		{request{method: "POST", path: "/skep/v1/tokens", token: adminToken, body: `{"role":"user","id":"x","tenant":"acme"}`},
			"refused|request|POST /skep/v1/tokens|default|admin:ada|asked for a token of tenant acme"},
		{request{path: "/whoami", token: adminToken}, "refused|request|GET /whoami|default|admin:ada|too many requests"},
	} {
		g.do(c.q)
		if got := g.ears.recorded(); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s %s: the audit heard %q, want %q", c.q.method, c.q.path, got, c.want)
		}
	}
}

func TestNoTokens(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for _, c := range []struct {
		q    request
		want int
	}{
		{request{method: "POST", path: "/skep/v1/tokens", token: adminToken, body: `{"role":"user","id":"x"}`}, 503},
		{request{path: "/skep/v1/tokens", token: adminToken}, 200},
		{request{method: "DELETE", path: "/skep/v1/tokens/x", token: adminToken}, 404},
	} {
		if a := h.do(c.q); a.status != c.want {
			t.Errorf("%s %s: %d %s", c.q.method, c.q.path, a.status, a.body)
		}
	}
}

// A refused definition and the acts of admins are audited.
func TestActsAreAudited(t *testing.T) {
	t.Parallel()
	g := newTokenHost(t, func(h *testHost) {
		h.opt.Definitions = refusingDefinitions{}
		h.limits.Quarantine = quarantineStub{"math"}
	})
	for _, c := range []struct {
		q    request
		want string
	}{
		{request{method: "POST", path: "/swarms/load", token: acmeAdmin, body: `{"json":"{}"}`},
			"refused|swarm.load|hive|acme|admin:ann|definition refused: agents.boss.source names a file"},
		{request{path: "/swarms/dump", token: adminToken}, "done|swarm.dump|hive|default|admin:ada|"},
		{request{method: "POST", path: "/health", token: adminToken, body: `{"status":"busy"}`}, "done|health.set|busy|default|admin:ada|"},
		{request{method: "POST", path: "/skep/v1/agents/math/release", token: operatorToken}, "done|agent.release|default/math|default|operator:root|"},
		{request{method: "POST", path: "/skep/v1/agents/text/release", token: operatorToken}, "refused|agent.release|default/text|default|operator:root|"},
		{request{method: "POST", path: "/health", token: acmeAdmin, body: `{"status":"busy"}`}, "refused|request|POST /health|acme|admin:ann|invalid role: the health"},
	} {
		a := g.do(c.q)
		if got := g.ears.recorded(); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s %s: %d %s; the audit heard %q, want %q", c.q.method, c.q.path, a.status, a.body, got, c.want)
		}
	}
}

// refusingDefinitions takes no definition.
type refusingDefinitions struct{ fakeDefinitions }

func (refusingDefinitions) Load(context.Context, string, string, []byte) (string, error) {
	return "", &swarm.Refusal{Kind: swarm.ErrInvalid, Text: "agents.boss.source names a file"}
}
