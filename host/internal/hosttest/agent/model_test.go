package agent_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"skep/abi"
	"skep/host"
	"skep/host/internal/hosttest"
	"skep/host/internal/turn/model/modeltest"
)

const modelSwarm = `schema = 1
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
` + hosttest.FailingModels + `[models.gone]
provider = "openai"
base_url = "http://127.0.0.1:1/v1"
model = "m"
api_key = "env::MODEL_KEY"
retries = 0
allow_private = true
`

// startModels starts the servers of modelSwarm. Each repeats the secret it is shown.
func startModels(t *testing.T) (text string) {
	t.Helper()
	leak := map[string]string{"X-Echo": "Bearer " + hosttest.ModelKey, "X-Request-Id": hosttest.ModelKey}
	serve := func(h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	failure := modeltest.Failure{Type: "invalid_request_error", Code: hosttest.ModelKey, Message: "Incorrect API key provided: " + hosttest.ModelKey + ", Bearer " + hosttest.ModelKey}
	good := serve(modeltest.OpenAI(func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{
			Header: leak, Text: []string{"your key is " + hosttest.ModelKey[:9], hosttest.ModelKey[9:], "."}, Reasoning: []string{hosttest.ModelKey},
			Usage: &abi.ChatUsage{InputTokens: 1000, OutputTokens: 500},
		}
	}))
	bad := serve(modeltest.OpenAI(func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Status: http.StatusUnauthorized, Header: leak, Failure: failure}
	}))
	odd := serve(modeltest.Anthropic(func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Header: leak, Body: "event: message_start\ndata: {no JSON, but " + hosttest.ModelKey + "\n\n", Type: "text/event-stream"}
	}))
	site := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("X-Key"))
		_, _ = fmt.Fprintf(w, "the key is %q", r.Header.Get("X-Key"))
	}))
	return strings.NewReplacer("GOOD", good, "BAD", bad, "ODD", odd, "SITE", site).Replace(modelSwarm)
}

// startModelHost starts a host whose secrets are in its environment and in a file, and
// returns its log.
func startModelHost(t *testing.T, text string, change ...func(*host.Options)) (*hosttest.Host, *hosttest.LogBuffer) {
	t.Helper()
	return hosttest.StartText(t, text, map[string]string{"MODEL_KEY": hosttest.ModelKey}, change...)
}

// A model of the file answers through the real host, at its price.
func TestModelsAnswer(t *testing.T) {
	t.Parallel()
	h, _ := startModelHost(t, startModels(t))
	a := h.Answer(t, "t", hosttest.ChatStep("good"), hosttest.ChatStep("bad"), hosttest.ChatStep("odd"), hosttest.ChatStep("gone"),
		hosttest.Step{"task_complete", map[string]any{"finish_message": "{{0}}|{{1}}|{{2}}|{{3}}"}})
	got := strings.Split(a.Body, "|")
	for i, want := range []string{"your key is ", "ERROR UNAVAILABLE: models.bad: ", "ERROR UPSTREAM: models.odd: ", "ERROR UNAVAILABLE: models.gone: "} {
		if len(got) != 4 || !strings.HasPrefix(got[i], want) {
			t.Fatalf("%q, want %q at %d", got, want, i)
		}
	}
	if !strings.Contains(got[3], `cannot be reached at base_url "http://127.0.0.1:1/v1"`) {
		t.Errorf("nobody there: %q", got[3])
	}
	info, err := h.Client(t).Task(t.Context(), "t")
	if u := info.Usage; err != nil || u.MicroUSD != 2000 || u.Tokens < 1500+4096 {
		t.Errorf("it has cost %+v, %v", u, err) // what makes no sense costs what was reserved
	}
	metrics := h.Metrics(t)
	for _, want := range []string{"skep_llm_calls_total 4", "skep_llm_failures_total 3", "skep_llm_micro_usd_total 2000"} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// Secrets of the environment and of files, which every server repeats in headers,
// bodies and errors, are in nothing that an agent was given, and in nothing that
// the host keeps or sends.
func TestSecretsArePlantedNowhere(t *testing.T) {
	t.Parallel()
	text := startModels(t)
	h, log := startModelHost(t, text)
	site := text[strings.Index(text, `http = ["`)+len(`http = ["`):]
	site, _, _ = strings.Cut(site, `"`)
	a := h.Answer(t, "t", hosttest.ChatStep("good"), hosttest.ChatStep("bad"), hosttest.ChatStep("odd"), hosttest.ChatStep("gone"),
		hosttest.Step{"http.fetch", map[string]any{"method": "GET", "url": site + "/x"}},
		hosttest.Step{"log", map[string]any{"message": "{{0}}{{1}}{{2}}{{4}}"}},
		hosttest.Step{"task_complete", map[string]any{"finish_message": "{{0}}{{1}}{{2}}{{3}}{{4}}"}})
	if !strings.Contains(a.Body, "the key is") || !strings.Contains(a.Body, "your key is") {
		t.Fatalf("the servers did not answer: %q", a.Body)
	}
	metrics := h.Metrics(t)
	if !strings.Contains(metrics, "skep_llm_calls_total 4\n") {
		t.Fatal(metrics)
	}
	places := map[string][]byte{
		"the guest's memory": h.Recorded(t, "t"), "the store": h.Exported(t), "the answer": []byte(a.Body),
		"the log": log.Bytes(), "the metrics": []byte(metrics), "the data directory": h.Files(t),
		"the configuration": fmt.Appendf(nil, "%+v %#v", h.Config.Models, h.Config.Secrets),
	}
	for where, text := range places {
		if len(text) == 0 {
			t.Errorf("%s is empty", where)
		}
		for _, secret := range []string{hosttest.ModelKey, hosttest.SiteKey} {
			for _, form := range []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), secret[4:20]} {
				if i := bytes.Index(text, []byte(form)); i >= 0 {
					t.Errorf("%s holds a secret: …%s…", where, text[max(0, i-60):min(len(text), i+60)])
				}
			}
		}
	}
}
