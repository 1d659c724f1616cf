package security_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"skep/host"
	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
	"skep/host/internal/hosttest"
)

// identityProvider are an issuer's key and the reference's two endpoints.
type identityProvider struct {
	key       ed25519.PrivateKey
	endpoints *httptest.Server
}

func newIdentityProvider(t *testing.T, dir string) *identityProvider {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "jwks.json"), set, 0o600); err != nil {
		t.Fatal(err)
	}
	o := &identityProvider{key: key}
	o.endpoints = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		role, id, ok := strings.Cut(token, ":")
		switch {
		case strings.HasPrefix(token, "broken"):
			w.WriteHeader(http.StatusInternalServerError)
		case !ok:
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodPost:
			fmt.Fprintf(w, `{"token":%q}`, token)
		default:
			fmt.Fprintf(w, `{"role":%q,"id":%q,"api_key":%q}`, role, id, token)
		}
	}))
	t.Cleanup(o.endpoints.Close)
	return o
}

// jwt makes a token of the issuer.
func (o *identityProvider) jwt(t *testing.T, sub, role, org string) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: o.key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(s).Claims(map[string]any{
		"iss": "https://id.example", "aud": "hive", "sub": sub, "exp": time.Now().Add(time.Hour).Unix(), "role": role, "org": org,
	}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Each kind of credential leads to its own principal, and none to another's.
func TestCredentials(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	dir := hosttest.WriteSwarm(t, "")
	o := newIdentityProvider(t, dir)
	more := fmt.Sprintf(`
[tenants.acme]
[auth.jwt]
issuer = "https://id.example"
audience = "hive"
keys = "file::jwks.json"
tenant_claim = "org"
roles = { staff = "user", boss = "admin" }
[auth.endpoints]
login = "%[1]s/login"
token_info = "%[1]s/info"
tenant = "acme"
[[auth.keys]]
id = "root"
role = "operator"
key = "the-operators-own-key-1"
[[auth.keys]]
id = "alice"
role = "user"
key = "user:alice-static-key"
`, o.endpoints.URL)
	addTo(t, filepath.Join(dir, "swarm.toml"), more)
	r := hosttest.Start(t, filepath.Join(dir, "swarm.toml"), data)
	ask := func(token, method, path, body string) (int, string) {
		req, _ := http.NewRequestWithContext(t.Context(), method, "http://"+r.Addr()+path, strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+token)
		rsp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer rsp.Body.Close()
		raw, _ := io.ReadAll(rsp.Body)
		return rsp.StatusCode, string(raw)
	}
	_, raw := ask("the-operators-own-key-1", "POST", "/skep/v1/tokens", `{"role":"user","id":"alice","tenant":"acme"}`)
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(raw), &made); err != nil || made.Token == "" {
		t.Fatalf("%s, %v", raw, err)
	}
	callers := map[string]string{
		"user:alice-static-key":                "user:alice@hive",
		made.Token:                             "user:acme/alice@hive",
		o.jwt(t, "alice2", "staff", "default"): "user:alice2@hive",
		o.jwt(t, "bob", "staff", "acme"):       "user:acme/bob@hive",
		o.jwt(t, "ada", "boss", "default"):     "admin:ada@hive",
		"user:carol":                           "user:acme/carol@hive",
	}
	for token, owner := range callers {
		if status, body := ask(token, "POST", "/message", `{"task_id":"mine","body":"hello"}`); status != 200 {
			t.Errorf("%s posts: %d %s", owner, status, body)
		}
		status, body := ask(token, "GET", "/skep/v1/tasks", "")
		if want := `"task_owner":"` + owner + `"`; status != 200 || strings.Count(body, `"task_owner"`) != 1 || !strings.Contains(body, want) {
			t.Errorf("%s sees %d %s", owner, status, body)
		}
	}
	for token, want := range map[string]int{
		"nobody": 401, "skep_nobody": 401, "broken": 503, "operator:eve": 401,
		o.jwt(t, "root", "boss", "default"): 401, // it would be the operator to MAIL
		o.jwt(t, "eve", "staff", "globex"):  401, o.jwt(t, "eve", "user", "acme"): 401,
		"A" + o.jwt(t, "eve", "staff", "acme"): 401,
	} {
		if status, body := ask(token, "GET", "/whoami", ""); status != want {
			t.Errorf("%.30s: %d %s, want %d", token, status, body, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if err := r.Stop(); err != nil {
		t.Error("stop:", err)
	}
	checkAudit(t, datadir.Data{Dir: data}.AuditFile(), callers)

	// A tenant that is taken out of the file is closed to its tokens as well.
	r = hosttest.Start(t, filepath.Join(hosttest.WriteSwarm(t, ""), "swarm.toml"), data)
	if status, body := ask(made.Token, "GET", "/whoami", ""); status != 401 {
		t.Errorf("a token of a tenant that is gone: %d %s", status, body)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := r.Stop(); err != nil {
		t.Error("stop:", err)
	}
}

// checkAudit holds the log of a host's life against what happened in it.
func checkAudit(t *testing.T, file string, secrets map[string]string) {
	t.Helper()
	if _, err := datadir.VerifyAudit(file, "", ""); err != nil {
		t.Error(err)
	}
	acts, refused := []string{}, int64(0)
	if err := datadir.AuditEntries(file, func(_ int64, e datadir.AuditEntry) {
		if e.Outcome == "refused" {
			refused += max(1, e.Count)
			return
		}
		acts = append(acts, e.Act)
	}, nil); err != nil {
		t.Error(err)
	}
	if got := strings.Join(acts, " "); got != "host.start token.create host.stop" || refused != 8 {
		t.Errorf("the audit log has %s, and %d refusals", got, refused)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for token := range secrets {
		if strings.Contains(string(raw), token) {
			t.Errorf("the audit log shows the key %.10s…", token)
		}
	}
}

func addTo(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A host whose audit log cannot be written does not start.
func TestNoAudit(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "audit.log"), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(filepath.Join(hosttest.WriteSwarm(t, ""), "swarm.toml"), config.Options{BundleDir: hosttest.Bundles()})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(context.Background(), host.Options{Config: cfg, DataDir: data, Listen: "127.0.0.1:0", AdminListen: "off"})
	if err == nil || !strings.Contains(err.Error(), "open the audit log") {
		t.Errorf("New = %v, %v", h, err)
	}
}
