package host

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/config"
	"skep/host/internal/guests"
	"skep/host/internal/model"
	"skep/host/internal/model/modeltest"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

const askingSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
allow = { llm = ["good", "bad", "odd", "gone"], http = ["SITE"], http_private = true, secrets = ["site"] }
[secrets.site]
value = "file::site.key"
hosts = ["SITE"]
header = "X-Key"
[models.good]
provider = "openai"
base_url = "GOOD/v1"
model = "m"
api_key = "env::MODEL_KEY"
input_usd_per_mtok = 1
output_usd_per_mtok = 2
allow_private = true
[models.bad]
provider = "openai"
base_url = "BAD/v1"
model = "m"
api_key = "env::MODEL_KEY"
retries = 0
allow_private = true
[models.odd]
provider = "anthropic"
base_url = "ODD"
model = "m"
api_key = "env::MODEL_KEY"
retries = 0
allow_private = true
[models.gone]
provider = "openai"
base_url = "http://127.0.0.1:1/v1"
model = "m"
api_key = "env::MODEL_KEY"
retries = 0
allow_private = true
`

const (
	modelKey = "sk-planted+model/key=0123456789"
	siteKey  = "planted-site-key-0123456789"
)

// shared is a buffer that a log may write to while it is read.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *shared) Bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.b.Bytes())
}

// world starts the servers of askingSwarm. Each repeats the secret it is shown.
func modelWorld(t *testing.T) (text string) {
	t.Helper()
	leak := map[string]string{"X-Echo": "Bearer " + modelKey, "X-Request-Id": modelKey}
	serve := func(h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	failure := modeltest.Failure{Type: "invalid_request_error", Code: modelKey, Message: "Incorrect API key provided: " + modelKey + ", Bearer " + modelKey}
	good := serve(modeltest.OpenAI(func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{
			Header: leak, Text: []string{"your key is " + modelKey[:9], modelKey[9:], "."}, Reasoning: []string{modelKey},
			Usage: &abi.ChatUsage{InputTokens: 1000, OutputTokens: 500},
		}
	}))
	bad := serve(modeltest.OpenAI(func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Status: http.StatusUnauthorized, Header: leak, Failure: failure}
	}))
	odd := serve(modeltest.Anthropic(func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Header: leak, Body: "event: message_start\ndata: {no JSON, but " + modelKey + "\n\n", Type: "text/event-stream"}
	}))
	site := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("X-Key"))
		_, _ = fmt.Fprintf(w, "the key is %q", r.Header.Get("X-Key"))
	}))
	return strings.NewReplacer("GOOD", good, "BAD", bad, "ODD", odd, "SITE", site).Replace(askingSwarm)
}

// modelHost is a host of a file whose secrets are in its environment and in a
// file, and what it logs.
func modelHost(t *testing.T, text string, change ...func(*Options)) (*Host, *shared) {
	t.Helper()
	return hostOf(t, text, map[string]string{"MODEL_KEY": modelKey}, change...)
}

// hostOf is a host of a file with these variables in its environment.
func hostOf(t *testing.T, text string, variables map[string]string, change ...func(*Options)) (*Host, *shared) {
	t.Helper()
	log := &shared{}
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"swarm.toml": []byte(text), "script.wasm": guests.Bytes(t, "plugins/script"), "site.key": []byte(siteKey + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) (string, bool) { value, ok := variables[name]; return value, ok }
	cfg, err := config.Load(filepath.Join(dir, "swarm.toml"), config.Options{Env: env, BundleDir: filepath.Join(guests.Root(), "bin", "plugins")})
	if err != nil {
		t.Fatal(err)
	}
	h, _ := sweptHost(t, append([]func(*Options){func(o *Options) {
		o.Config, o.AdminListen = cfg, "127.0.0.1:0"
		o.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}}, change...)...)
	return h, log
}

// answer posts a script and waits for what comes of it.
func (h *Host) answer(t *testing.T, task string, calls ...[2]any) swarm.Answer {
	t.Helper()
	body, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	alice := swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleUser, ID: "alice"}
	r, err := h.swarm.Submit(t.Context(), swarm.Post{
		Principal: alice, Swarm: "hive", Door: "test", Task: task, Type: mail.Request, Subject: "s", Body: string(body),
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := h.swarm.Wait(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func chatOf(name string) [2]any {
	return [2]any{"llm.chat", map[string]any{"model": name, "messages": []any{map[string]any{"role": "user", "content": "What is my key?"}}}}
}

// A model of the file answers through the real host, at its price.
func TestModelsAnswer(t *testing.T) {
	t.Parallel()
	h, _ := modelHost(t, modelWorld(t))
	a := h.answer(t, "t", chatOf("good"), chatOf("bad"), chatOf("odd"), chatOf("gone"),
		[2]any{"task_complete", map[string]any{"finish_message": "{{0}}|{{1}}|{{2}}|{{3}}"}})
	got := strings.Split(a.Body, "|")
	for i, want := range []string{"your key is ", "ERROR UNAVAILABLE: models.bad: ", "ERROR UPSTREAM: models.odd: ", "ERROR UNAVAILABLE: models.gone: "} {
		if len(got) != 4 || !strings.HasPrefix(got[i], want) {
			t.Fatalf("%q, want %q at %d", got, want, i)
		}
	}
	if !strings.Contains(got[3], `cannot be reached at base_url "http://127.0.0.1:1/v1"`) {
		t.Errorf("nobody there: %q", got[3])
	}
	snap, err := h.swarm.Task(t.Context(), swarm.TaskKey{InstanceKey: swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleUser, ID: "alice"}.Instance("hive"), Task: "t"})
	if u := snap.Task.Usage; err != nil || u.MicroUSD != 2000 || u.Tokens < 1500+4096 {
		t.Errorf("it has cost %+v, %v", u, err) // what makes no sense costs what was reserved
	}
	for _, c := range h.defs.providers.counters() {
		if want := map[string]int64{"skep_llm_calls_total": 4, "skep_llm_failures_total": 3, "skep_llm_micro_usd_total": 2000}[c.Name]; want != 0 && c.Value != want {
			t.Errorf("%s is %d, want %d", c.Name, c.Value, want)
		}
	}
}

// Secrets of the environment and of files, which every server repeats in headers,
// bodies and errors, are in nothing that an agent was given, and in nothing that
// the host keeps or tells.
func TestSecretsArePlantedNowhere(t *testing.T) {
	t.Parallel()
	text := modelWorld(t)
	h, log := modelHost(t, text)
	site := text[strings.Index(text, `http = ["`)+len(`http = ["`):]
	site, _, _ = strings.Cut(site, `"`)
	a := h.answer(t, "t", chatOf("good"), chatOf("bad"), chatOf("odd"), chatOf("gone"),
		[2]any{"http.fetch", map[string]any{"method": "GET", "url": site + "/x"}},
		[2]any{"log", map[string]any{"message": "{{0}}{{1}}{{2}}{{4}}"}},
		[2]any{"task_complete", map[string]any{"finish_message": "{{0}}{{1}}{{2}}{{3}}{{4}}"}})
	key := swarm.TaskKey{InstanceKey: swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleUser, ID: "alice"}.Instance("hive"), Task: "t"}
	if !strings.Contains(a.Body, "the key is") || !strings.Contains(a.Body, "your key is") {
		t.Fatalf("the servers did not answer: %q", a.Body)
	}
	rec, err := h.store.Record(t.Context(), key, 1)
	if err != nil {
		t.Fatal(err)
	}
	var given, kept bytes.Buffer // all that ever enters the guest's memory; all that is stored
	given.Write(rec.Header.Input)
	for _, e := range rec.Entries {
		fmt.Fprintf(&given, "\n%s %v", e.Answer, e.Err)
	}
	if err := h.store.Export(t.Context(), swarm.DefaultTenant, &kept); err != nil {
		t.Fatal(err)
	}
	places := map[string][]byte{
		"the guest's memory": given.Bytes(), "the store": kept.Bytes(), "the answer": []byte(a.Body),
		"the log": log.Bytes(), "the metrics": h.metrics(t), "the data directory": h.files(t),
		"the configuration": fmt.Appendf(nil, "%+v %#v", h.opt.Config.Models, h.opt.Config.Secrets),
	}
	for where, text := range places {
		if len(text) == 0 {
			t.Errorf("%s is empty", where)
		}
		for _, secret := range []string{modelKey, siteKey} {
			for _, form := range []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), secret[4:20]} {
				if i := bytes.Index(text, []byte(form)); i >= 0 {
					t.Errorf("%s holds a secret: …%s…", where, text[max(0, i-60):min(len(text), i+60)])
				}
			}
		}
	}
}

func (h *Host) metrics(t *testing.T) []byte {
	t.Helper()
	rsp, err := http.Get("http://" + h.AdminAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rsp.Body.Close() }()
	text, err := io.ReadAll(rsp.Body)
	if err != nil || !bytes.Contains(text, []byte("skep_llm_calls_total 4\n")) {
		t.Fatalf("%s, %v", text, err)
	}
	return text
}

// files is all that is in the host's data directory.
func (h *Host) files(t *testing.T) (all []byte) {
	t.Helper()
	err := filepath.WalkDir(h.opt.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary one
		}
		all = append(all, text...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Faults of models are told before the host starts, with the table.
func TestModelFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "script.wasm"), guests.Bytes(t, "plugins/script"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, _, _ := strings.Cut(askingSwarm, "allow = ")
	for table, want := range map[string][2]string{
		"provider = \"script\"\ncassette = \"none.json\"":                                          {".cassette", "none.json"},
		"provider = \"openai\"\nmodel = \"m\"\ncassette = \"none.jsonl\"":                          {".cassette", "none.jsonl"},
		"provider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://8.8.8.8/v1\"\napi_key = \" x\"": {"", "api_key"},
		"provider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://10.0.0.1/v1\"": {
			".base_url", `base_url: "http://10.0.0.1/v1" is a private address; it takes allow_private = true in [models.m]`},
	} {
		cfg, err := config.Parse("swarm.toml", []byte(file+"[models.m]\n"+table+"\n"), dir, config.Options{})
		if cfg == nil {
			t.Fatal(err)
		}
		faults := ModelFaults(cfg)
		if len(faults) != 1 || faults[0].Path != "models.m"+want[0] || !strings.Contains(faults[0].Message, want[1]) {
			t.Errorf("%s: %v, want %s", table, faults, want)
		}
	}
}

// What becomes of a failed call is one of the ABI's codes, with its reason.
func TestChatFaults(t *testing.T) {
	t.Parallel()
	for kind, want := range map[model.Kind]abi.Code{
		model.RateLimited: abi.CodeUnavailable, model.Overloaded: abi.CodeUnavailable, model.Unavailable: abi.CodeUnavailable,
		model.Auth: abi.CodeUnavailable, model.Refused: abi.CodeUpstream, model.Malformed: abi.CodeUpstream,
		model.Unexpected: abi.CodeUpstream, model.TooLong: abi.CodeLimit, model.TooLarge: abi.CodeLimit,
	} {
		fault := chatFault(&model.Error{Kind: kind, Name: "m", Message: "no", RetryAfter: 2 * time.Second})
		if fault.Code != want || fault.Reason != string(kind) || fault.RetryAfterMS != 2000 || fault.Message != "models.m: no" {
			t.Errorf("%s: %+v", kind, fault)
		}
	}
	own := abi.Errorf(abi.CodeCancelled, abi.OpLLMChat, "cancelled", "over")
	if fault := chatFault(fmt.Errorf("x: %w", own)); fault != own {
		t.Errorf("its own: %+v", fault)
	}
	if fault := chatFault(errors.New("late")); fault.Code != abi.CodeDeadline {
		t.Errorf("%+v", fault)
	}
}

// What a call has cost that got no answer: nothing where the provider refused it or was
// not there, all that was reserved where it had begun to answer or the call's time ran
// out with it.
func TestChatCost(t *testing.T) {
	t.Parallel()
	busy := modeltest.Failure{Type: "overloaded_error", Message: "busy"}
	for name, c := range map[string]struct {
		reply    modeltest.Reply
		streamed bool
		counts   bool
	}{
		"refused for a rate":           {modeltest.Reply{Status: 429}, true, false},
		"overloaded":                   {modeltest.Reply{Status: 503}, false, false},
		"broken off at once":           {modeltest.Reply{Body: ": soon\n\n", Type: "text/event-stream"}, true, false},
		"broken off before a piece":    {modeltest.Reply{Text: []string{"Yes."}, Events: 1}, true, true},
		"broken off after a piece":     {modeltest.Reply{Text: []string{"Yes.", "No."}, Events: 2}, true, true},
		"an error after a piece":       {modeltest.Reply{Text: []string{"Yes."}, Fail: &busy}, true, true},
		"a whole answer that is wrong": {modeltest.Reply{Body: `{"choices":[`, Type: "application/json"}, false, true},
		"silent until the end":         {modeltest.Reply{Silent: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(modeltest.OpenAI(modeltest.InOrder(c.reply)))
			t.Cleanup(s.Close)
			p := newProviders(nil)
			m, err := p.openOne(config.Model{Name: "m", Provider: "openai", Model: "m", BaseURL: s.URL + "/v1", Timeout: 300 * time.Millisecond, AllowPrivate: true, InputPrice: 1})
			if err != nil {
				t.Fatal(err)
			}
			req := modeltest.Question("Tea?")
			var emit func(abi.ChatPiece) error
			if c.streamed {
				emit = func(abi.ChatPiece) error { return nil }
			}
			_, cost, fault := m.Chat(t.Context(), req, "k", emit)
			want := swarm.Spend{}
			if c.counts {
				want = m.Most(req)
			}
			if fault == nil || cost != want || c.counts != (p.tokens.Load() > 0) {
				t.Errorf("it has cost %+v, want %+v: %v", cost, want, fault)
			}
		})
	}
}
