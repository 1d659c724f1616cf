package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/peer/registry"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
)

// depot answers as a MAIL server does and counts the requests.
func depot(t *testing.T) (url string, asked *int) {
	t.Helper()
	var mu sync.Mutex
	asked = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		*asked++
		if r.Method != http.MethodGet || r.URL.Path != "/" || r.Header.Get("Authorization") != "" {
			t.Errorf("the swarm was asked %s %s %v", r.Method, r.URL, r.Header)
		}
		_, _ = w.Write([]byte(`{"name":"mail","protocol_version":"1.3","swarm":{"name":"depot","description":"parts","entrypoint":"x","keywords":["k"],"public":true}}`))
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func open(t *testing.T, opt registry.Options) *registry.Registry {
	t.Helper()
	if opt.Path == "" {
		opt.Path = filepath.Join(t.TempDir(), "registry.json")
	}
	opt.Local, opt.AllowPrivate = "hive", true
	r, err := registry.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func register(t *testing.T, r *registry.Registry, q registry.Request) registry.Entry {
	t.Helper()
	e, err := r.Register(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func names(r *registry.Registry) (all []string) {
	for _, e := range r.Entries() {
		all = append(all, e.Name)
	}
	return all
}

// A registration queries the swarm's description.
func TestRegister(t *testing.T) {
	t.Parallel()
	url, asked := depot(t)
	now := time.Unix(1e9, 0)
	r := open(t, registry.Options{Now: func() time.Time { return now }})
	e := register(t, r, registry.Request{Name: "depot", BaseURL: url + "/", Volatile: true, Metadata: json.RawMessage(`{"a":1}`)})
	zero := 0.0
	want := registry.Entry{
		Name: "depot", BaseURL: url, Version: "1.3", LastSeen: now.UTC(), Latency: &zero, Description: "parts",
		Entrypoint: "x", Since: now.UTC(),
		Keywords: []string{"k"}, Public: true, Active: true, Metadata: json.RawMessage(`{"a":1}`), Volatile: true, Registered: now.UTC(),
	}
	if diff := cmp.Diff(want, e); diff != "" || *asked != 1 {
		t.Errorf("asked %d times; -want +got\n%s", *asked, diff)
	}
	if diff := cmp.Diff([]registry.Entry{want}, r.Entries()); diff != "" {
		t.Error(diff)
	}
}

// A swarm that does not answer, or not as one does, is known all the same, as
// one that is not active.
func TestRegisterWithoutAnswer(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"error":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"no types": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"swarm":"depot"}`)) },
		"too much": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) },
		"verbose": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"swarm":{"description":%q}}`, strings.Repeat("x", 5000))
		},
		"wordy": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"swarm":{"keywords":["k",%q]}}`, strings.Repeat("x", 129))
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"gone": nil,
	} {
		s := httptest.NewServer(answer)
		if answer == nil {
			s.Close()
		}
		r := open(t, registry.Options{})
		e := register(t, r, registry.Request{Name: "depot", BaseURL: s.URL})
		if e.Active || e.Version != "" || e.Public || !e.LastSeen.IsZero() || e.Latency != nil || e.LastError == "" || e.Since.IsZero() || len(r.Entries()) != 1 {
			t.Errorf("%s: %+v", name, e)
		}
		s.Close()
	}
}

// resolver has one address for every name.
type resolver struct{ address string }

func (r resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(r.address)}, nil
}

// No registration makes the host ask a machine that is not public; one that
// serves its own machine only may ask loopback, but never because DNS says so.
func TestRegisterReachesNothingPrivate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url, resolves string
		private       bool
	}{
		{"http://127.0.0.1:9", "", false}, {"http://localhost:9", "", false}, {"http://[::1]:9", "", false},
		{"http://10.0.0.1", "", false}, {"http://169.254.169.254", "", false}, {"http://169.254.169.254", "", true}, {"http://0.0.0.0:9", "", true},
		{"https://depot.example", "127.0.0.1", true}, {"https://depot.example", "10.0.0.1", true},
		{"https://metadata.example", "169.254.169.254", false},
	} {
		r, err := registry.Open(t.Context(), registry.Options{
			Path: filepath.Join(t.TempDir(), "r.json"), AllowPrivate: c.private,
			Egress: egress.Options{
				Resolver: resolver{c.resolves},
				Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
					t.Errorf("%s: a connection was opened", c.url)
					return nil, errors.New("no")
				},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Register(t.Context(), registry.Request{Name: "depot", BaseURL: c.url})
		if !errors.Is(err, swarm.ErrInvalid) || !strings.Contains(err.Error(), "allow_private = true") || len(r.Entries()) != 0 {
			t.Errorf("%s (private: %v): %v", c.url, c.private, err)
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	r := open(t, registry.Options{Static: []registry.Static{{Name: "fixed", BaseURL: "https://fixed.example"}}})
	const good = "https://depot.example"
	for name, c := range map[string]struct {
		q    registry.Request
		kind error
		want string
	}{
		"no name":        {registry.Request{BaseURL: good}, swarm.ErrInvalid, "name must not be empty"},
		"a bad name":     {registry.Request{Name: "a@b", BaseURL: good}, swarm.ErrInvalid, "name must not contain"},
		"a line":         {registry.Request{Name: "a\nb", BaseURL: good}, swarm.ErrInvalid, "printable"},
		"own name":       {registry.Request{Name: "hive", BaseURL: good}, swarm.ErrInvalid, "the swarm of this host"},
		"the file's":     {registry.Request{Name: "fixed", BaseURL: good}, swarm.ErrConflict, "change [peers.fixed]"},
		"no URL":         {registry.Request{Name: "depot"}, swarm.ErrInvalid, "base_url must be"},
		"a path":         {registry.Request{Name: "depot", BaseURL: "/etc/passwd"}, swarm.ErrInvalid, "base_url must be"},
		"a file":         {registry.Request{Name: "depot", BaseURL: "file:///etc/passwd"}, swarm.ErrInvalid, "base_url must be"},
		"credentials":    {registry.Request{Name: "depot", BaseURL: "https://u:p@depot.example"}, swarm.ErrInvalid, "credentials"},
		"a space":        {registry.Request{Name: "depot", BaseURL: good + "/a b"}, swarm.ErrInvalid, "base_url must not have spaces"},
		"a line in it":   {registry.Request{Name: "depot", BaseURL: good + "\n"}, swarm.ErrInvalid, "base_url must not have spaces"},
		"a letter":       {registry.Request{Name: "é", BaseURL: good}, swarm.ErrInvalid, "takes [peers.NAME]"},
		"a brace":        {registry.Request{Name: "a}b", BaseURL: good}, swarm.ErrInvalid, "name must be"},
		"everybody":      {registry.Request{Name: "all", BaseURL: good}, swarm.ErrInvalid, "name must be"},
		"a way up":       {registry.Request{Name: "../../etc", BaseURL: good}, swarm.ErrInvalid, "name must be"},
		"its own, large": {registry.Request{Name: "Hive", BaseURL: good}, swarm.ErrConflict, "would have the token of 'hive', ${SWARM_AUTH_TOKEN_HIVE}"},
		"almost fixed":   {registry.Request{Name: "FIXED", BaseURL: good}, swarm.ErrConflict, "would have the token of 'fixed'"},
		"a query":        {registry.Request{Name: "depot", BaseURL: good + "?a=b"}, swarm.ErrInvalid, "query"},
		"a wildcard":     {registry.Request{Name: "depot", BaseURL: "https://*"}, swarm.ErrInvalid, "a *"},
		"dots":           {registry.Request{Name: "depot", BaseURL: good + "/a/../b"}, swarm.ErrInvalid, "base_url"},
		"a stolen token": {registry.Request{Name: "depot", BaseURL: good, Token: "${OPENAI_API_KEY}"}, swarm.ErrInvalid, "${SWARM_AUTH_TOKEN_DEPOT}"},
		"another's":      {registry.Request{Name: "depot", BaseURL: good, Token: "${SWARM_AUTH_TOKEN_FIXED}"}, swarm.ErrInvalid, "[peers.depot]"},
		"a header":       {registry.Request{Name: "depot", BaseURL: good, Token: "a\r\nX-Y: z"}, swarm.ErrInvalid, "visible ASCII"},
		"metadata":       {registry.Request{Name: "depot", BaseURL: good, Metadata: json.RawMessage(`[]`)}, swarm.ErrInvalid, "metadata must be"},
		"much metadata": {registry.Request{Name: "depot", BaseURL: good, Metadata: json.RawMessage(`{"a":"` + strings.Repeat("x", 17000) + `"}`)},
			swarm.ErrInvalid, "metadata has"},
	} {
		_, err := r.Register(t.Context(), c.q)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if diff := cmp.Diff([]string{"fixed"}, names(r)); diff != "" {
		t.Error(diff)
	}
}

// Lasting entries are there after the next start, in their order, without any
// token; volatile ones are not.
func TestFile(t *testing.T) {
	t.Parallel()
	url, _ := depot(t)
	path := filepath.Join(t.TempDir(), "registry.json")
	r := open(t, registry.Options{Path: path})
	for _, q := range []registry.Request{
		{Name: "z-last", BaseURL: url, Token: "very-secret-token"},
		{Name: "a", BaseURL: url, Token: "${SWARM_AUTH_TOKEN_A}"},
		{Name: "passing", BaseURL: url, Token: "passing-secret", Volatile: true},
		{Name: "open", BaseURL: url},
	} {
		register(t, r, q)
	}
	raw, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(raw), "secret") || strings.Contains(string(raw), "passing") {
		t.Errorf("%v\n%s", err, raw)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	checkTokens(t, r, map[string][2]string{
		"z-last": {"very-secret-token", "${SWARM_AUTH_TOKEN_Z_LAST}"}, "a": {"", "${SWARM_AUTH_TOKEN_A}"},
		"passing": {"passing-secret", ""}, "open": {"", ""}, "nobody": {"", ""},
	})
	again := open(t, registry.Options{Path: path})
	if diff := cmp.Diff([]string{"z-last", "a", "open"}, names(again)); diff != "" {
		t.Error(diff)
	}
	checkTokens(t, again, map[string][2]string{
		"z-last": {"", "${SWARM_AUTH_TOKEN_Z_LAST}"}, "a": {"", "${SWARM_AUTH_TOKEN_A}"}, "passing": {"", ""},
	})
	if diff := cmp.Diff(r.Entries()[0], again.Entries()[0]); diff != "" {
		t.Errorf("the entry has changed\n%s", diff)
	}
}

func checkTokens(t *testing.T, r *registry.Registry, want map[string][2]string) {
	t.Helper()
	for name, w := range want {
		if token, ref := r.Token(name); token != w[0] || ref != w[1] {
			t.Errorf("%s: %q, %q, want %q", name, token, ref, w)
		}
	}
}

// A swarm that is registered again keeps its place; one that is volatile now is
// gone from the file.
func TestRegisterAgain(t *testing.T) {
	t.Parallel()
	url, _ := depot(t)
	path := filepath.Join(t.TempDir(), "registry.json")
	r := open(t, registry.Options{Path: path})
	for _, q := range []registry.Request{
		{Name: "a", BaseURL: url, Token: "first-token"}, {Name: "b", BaseURL: url},
		{Name: "a", BaseURL: url, Token: "second-token", Volatile: true, Operator: true},
	} {
		register(t, r, q)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names(r)); diff != "" {
		t.Error(diff)
	}
	checkTokens(t, r, map[string][2]string{"a": {"second-token", ""}})
	if diff := cmp.Diff([]string{"b"}, names(open(t, registry.Options{Path: path}))); diff != "" {
		t.Error(diff)
	}
}

// The operator's file goes before what was registered.
func TestStatic(t *testing.T) {
	t.Parallel()
	url, _ := depot(t)
	path := filepath.Join(t.TempDir(), "registry.json")
	register(t, open(t, registry.Options{Path: path}), registry.Request{Name: "depot", BaseURL: url})
	r := open(t, registry.Options{Path: path, Static: []registry.Static{{Name: "depot", BaseURL: "https://depot.example", Public: true}}})
	all := r.Entries()
	if len(all) != 1 || all[0].BaseURL != "https://depot.example" || !all[0].Public || all[0].Active {
		t.Errorf("%+v", all)
	}
	checkTokens(t, r, map[string][2]string{"depot": {"", "[peers.depot] auth_token"}})
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON": "{", "a newer form": `{"schema":2}`,
		"another name":           `{"schema":1,"endpoints":{"a":{"swarm_name":"b","base_url":"https://x.example"}}}`,
		"no address":             `{"schema":1,"endpoints":{"a":{"swarm_name":"a"}}}`,
		"a variable of the host": `{"schema":1,"endpoints":{"a":{"swarm_name":"a","base_url":"https://x.example","auth_token_ref":"${AWS_SECRET_ACCESS_KEY}"}}}`,
	} {
		path := filepath.Join(t.TempDir(), "registry.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := registry.Open(t.Context(), registry.Options{Path: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What cannot be kept is not known either.
func TestRegisterOnABrokenDisk(t *testing.T) {
	t.Parallel()
	url, _ := depot(t)
	r := open(t, registry.Options{Path: filepath.Join(t.TempDir(), "none", "registry.json")})
	if _, err := r.Register(t.Context(), registry.Request{Name: "depot", BaseURL: url}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if len(r.Entries()) != 0 {
		t.Errorf("%+v", r.Entries())
	}
}

func TestRegisterTogether(t *testing.T) {
	t.Parallel()
	url, _ := depot(t)
	path := filepath.Join(t.TempDir(), "registry.json")
	r := open(t, registry.Options{Path: path})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 3 {
				if _, err := r.Register(t.Context(), registry.Request{Name: fmt.Sprint("s", i), BaseURL: url}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if a, b := len(r.Entries()), len(open(t, registry.Options{Path: path}).Entries()); a != 8 || b != 8 {
		t.Errorf("%d known, %d kept", a, b)
	}
}

// A caller who leaves registers nothing.
func TestRegisterCalledOff(t *testing.T) {
	t.Parallel()
	url, _ := depot(t)
	r := open(t, registry.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Register(ctx, registry.Request{Name: "depot", BaseURL: url}); !errors.Is(err, context.Canceled) || len(r.Entries()) != 0 {
		t.Errorf("%v, %v", err, r.Entries())
	}
}
