package security_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/hosttest"
	"skep/host/internal/turn/model/modeltest"
)

// This file has the line "secrets planted in environment, files and responses are
// found nowhere in guest memory, histories, journals, logs, metrics or errors".

const plantedSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
enable_interswarm = true
[agents.boss]
source = "file:script.wasm"
comm_targets = ["thinker", "boss@depot"]
enable_entrypoint = true
enable_interswarm = true
can_complete_tasks = true
actions = ["http_get"]
allow = { llm = ["good", "bad", "odd", "taped"], http = ["SITE"], http_private = true, secrets = ["site"] }
[agents.thinker]
source = "bundled:llm"
comm_targets = ["boss"]
allow = { llm = ["good"] }
params = { model = "good", corrections = 0, emit_reasoning = true }
[actions.http_get]
source = "bundled:http"
allow = { http = ["SITE"], http_private = true, secrets = ["site"] }
[secrets.site]
value = "file::site.key"
hosts = ["SITE"]
header = "X-Key"
[models.good]
provider = "openai"
base_url = "GOOD/v1"
model = "m"
api_key = "env::MODEL_KEY"
allow_private = true
[models.taped]
provider = "openai"
base_url = "GOOD/v1"
model = "m"
api_key = "env::MODEL_KEY"
cassette = "tape.jsonl"
cassette_mode = "record"
allow_private = true
` + hosttest.FailingModels + `[peers.depot]
base_url = "PEER"
auth_token = "env::DEPOT_TOKEN"
allow_private = true
give_up = "1s"
[store]
keyring = "env::RING_KEY"
[server]
debug = true
[[auth.keys]]
id = "ops"
role = "operator"
key = "env::OPS_KEY"
[[auth.keys]]
id = "alice"
role = "user"
key = "env::ALICE_KEY"
[telemetry]
log_level = "debug"
`

// planted are the secrets of plantedSwarm by their variables; the file's has none.
func planted() map[string]string {
	return map[string]string{
		"MODEL_KEY": hosttest.ModelKey, "": hosttest.SiteKey, "DEPOT_TOKEN": "planted-depot-token-8c1d", "OPS_KEY": "planted-operators-key-77aa",
		"ALICE_KEY": "planted-key-of-alice-91f2", "RING_KEY": hex.EncodeToString([]byte("planted-ring-key-with-32-bytes!!")),
	}
}

// echoServer repeats the key that it is shown, each path in its own way.
type echoServer struct {
	// hold is called within /hold, while the turn waits for its answer.
	hold func()
}

func (l *echoServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("X-Key")
	w.Header().Set("X-Echo", "Bearer "+key)
	switch r.URL.Path {
	case "/pieces":
		w.Header().Set("Trailer", "X-Late")
		for _, part := range []string{"the key is ", key[:7], key[7:], "."} {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
		w.Header().Set("X-Late", key)
	case "/forms":
		quoted, _ := json.Marshal(key)
		_, _ = fmt.Fprintf(w, "the key is %s %s %s %x", quoted, url.QueryEscape(key), base64.StdEncoding.EncodeToString([]byte(key)), key)
	case "/gzip":
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "the key is "+key)
		_ = z.Close()
	case "/coding":
		w.Header().Set("Content-Encoding", key)
		_, _ = io.WriteString(w, key)
	case "/names":
		w.Header().Set(key, "yes")
		w.Header().Set("Set-Cookie", "session="+key)
		_, _ = io.WriteString(w, "the key is in a name")
	case "/to":
		w.Header().Set("Location", "/pieces?k="+url.QueryEscape(key))
		w.WriteHeader(http.StatusFound)
	case "/missing":
		http.Error(w, "no such key: "+key, http.StatusNotFound)
	case "/broken":
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, key)
	case "/status":
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 299 %s\r\nContent-Length: 2\r\n\r\nok", key)
			_ = conn.Close()
		}
	case "/garbage":
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = fmt.Fprintf(conn, "%s\r\n\r\n", key)
			_ = conn.Close()
		}
	case "/hold":
		l.hold()
		_, _ = io.WriteString(w, "held")
	}
}

func echoPaths() []string {
	return []string{"/pieces", "/forms", "/gzip", "/coding", "/names", "/to", "/missing", "/broken", "/status", "/garbage", "/hold"}
}

// startPlanted starts the servers of plantedSwarm.
func startPlanted(t *testing.T, hold func()) (text, site string) {
	t.Helper()
	serve := func(h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	leak := map[string]string{"X-Echo": "Bearer " + hosttest.ModelKey, "X-Request-Id": hosttest.ModelKey}
	var pieces []string
	for _, c := range "your key is " + hosttest.ModelKey + "." {
		pieces = append(pieces, string(c))
	}
	good := modeltest.OpenAI(func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Header: leak, Text: pieces, Reasoning: []string{"it is ", hosttest.ModelKey[:5], hosttest.ModelKey[5:]}}
	})
	bad := modeltest.OpenAI(func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Status: http.StatusUnauthorized, Header: leak, Failure: modeltest.Failure{
			Type: hosttest.ModelKey, Code: hosttest.ModelKey, Message: strings.Repeat("x", 440) + " your key " + hosttest.ModelKey + " is wrong",
		}}
	})
	odd := modeltest.Anthropic(func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Header: leak, Text: []string{"one "}, Fail: &modeltest.Failure{Type: "api_error", Message: "for " + hosttest.ModelKey}}
	})
	peer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		http.Error(w, `{"detail":"not with `+r.Header.Get("Authorization")+`"}`, http.StatusForbidden)
	})
	site = serve(&echoServer{hold})
	text = strings.NewReplacer("GOOD", serve(good), "BAD", serve(bad), "ODD", serve(odd), "SITE", site, "PEER", serve(peer)).Replace(plantedSwarm)
	return text, site
}

// guestMemory is what is in the memories of all guests of this process: the pages of
// images and what lies behind them.
func guestMemory() (all []byte, err error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer func() { _ = maps.Close() }()
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil, err
	}
	defer func() { _ = mem.Close() }()
	var behind uint64
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uint64
		var mode string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); err != nil {
			return nil, err
		}
		image := strings.Contains(lines.Text(), "/memfd:skep-image")
		if mode != "rw-p" || !image && from != behind {
			continue
		}
		behind = to
		page := make([]byte, to-from)
		if _, err := mem.ReadAt(page, int64(from)); err == nil { // it may have gone meanwhile
			all = append(all, page...)
		}
	}
	return all, nil
}

// pages is all that the API tells the operator and the user of tasks.
func pages(t *testing.T, h *hosttest.Host, tasks ...string) (all []byte) {
	t.Helper()
	paths := []string{
		"/", "/health", "/status", "/whoami", "/tasks", "/swarms", "/swarms/dump", "/ui/agents", "/ui/tasks", "/ui/dump-events", "/openapi.json",
		"/skep/v1/version", "/skep/v1/tasks", "/skep/v1/definition", "/skep/v1/peers", "/skep/v1/peers/depot", "/skep/v1/dead-letters", "/skep/v1/plan", "/skep/v1/tokens",
	}
	for _, id := range tasks {
		paths = append(paths, "/tasks/"+id, "/task?task_id="+id, "/ui/task/"+id, "/ui/task-summary/"+id, "/skep/v1/tasks/"+id, "/skep/v1/tasks/"+id+"/turns",
			"/skep/v1/tasks/"+id+"/events", "/skep/v1/tasks/"+id+"/history?agent=boss", "/skep/v1/tasks/"+id+"/history?agent=thinker")
	}
	read := 0
	for _, key := range []string{planted()["OPS_KEY"], planted()["ALICE_KEY"], "wrong-" + planted()["OPS_KEY"]} {
		for _, path := range paths {
			status, text := askFor(t, http.MethodGet, h.URL()+path, key)
			all = append(all, text...)
			if status == http.StatusOK {
				read++
			}
		}
		_, text := askFor(t, http.MethodPost, h.URL()+"/skep/v1/peers/depot/ping", key)
		all = append(all, text...)
	}
	if read < len(paths) {
		t.Errorf("only %d pages of %d could be read", read, 2*len(paths))
	}
	return all
}

// askFor returns an answer's status, and its body with its header.
func askFor(t *testing.T, method, url, key string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rsp.Body.Close() }()
	text, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(url, err)
	}
	return rsp.StatusCode, fmt.Appendf(text, "\n%v\n", rsp.Header)
}

// TestPlantedSecrets has every server repeat the secret that it is shown, in every way
// it has, and looks for all secrets in all that a guest, a file or a caller gets.
func TestPlantedSecrets(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var memory []byte
	text, site := startPlanted(t, func() {
		mu.Lock()
		defer mu.Unlock()
		text, err := guestMemory()
		if err != nil && runtime.GOOS == "linux" {
			t.Error(err)
		}
		memory = append(memory, text...)
	})
	h, log := hosttest.StartText(t, text, planted())
	h.Key = planted()["ALICE_KEY"]
	calls := []hosttest.Step{hosttest.ChatStep("good"), hosttest.ChatStep("bad"), hosttest.ChatStep("odd"), hosttest.ChatStep("taped")}
	for _, path := range echoPaths() {
		calls = append(calls, hosttest.Step{"http.fetch", hosttest.Args{"method": "GET", "url": site + path}}, hosttest.Step{"http_get", hosttest.Args{"url": site + path}})
	}
	var places strings.Builder
	for i := range calls {
		fmt.Fprintf(&places, "{{%d}}\n", i)
	}
	calls = append(calls, hosttest.Step{"log", hosttest.Args{"message": places.String()}},
		hosttest.Step{"send_request", hosttest.Args{"target": "thinker", "subject": "s", "body": "What is my key?\n" + places.String()}}, hosttest.Step{"await_message", hosttest.Args{}})
	thought := h.Answer(t, "t", calls...)
	remote := h.Answer(t, "p", hosttest.Step{"send_request", hosttest.Args{"target": "boss@depot", "subject": "s", "body": "hello"}}, hosttest.Step{"await_message", hosttest.Args{}})
	if !strings.Contains(thought.Body, "your key is ") || !strings.Contains(remote.Body, ": not with ") {
		t.Fatalf("answered %q and %q", thought.Body, remote.Body)
	}
	_, metrics := askFor(t, http.MethodGet, "http://"+h.AdminAddr()+"/metrics", "")
	taped := slices.IndexFunc(h.Config.Models, func(m config.Model) bool { return m.Name == "taped" })
	tape, err := os.ReadFile(h.Config.Models[taped].Cassette)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, known := range []string{"the key is [secret site].", "your key is [secret api_key]."} {
		if runtime.GOOS == "linux" && !bytes.Contains(memory, []byte(known)) {
			t.Errorf("the guest's memory lacks %q: it is not all there", known)
		}
	}
	findSecrets(t, map[string][]byte{
		memoryOfGuests: memory, "what a guest was given": h.Recorded(t, "t"), "the store": h.Exported(t), "the data directory": h.Files(t),
		"the answers": []byte(thought.Body + remote.Body), "the log": log.Bytes(), "the metrics": metrics, "the pages": pages(t, h, "t", "p"), "the cassette": tape,
		"the configuration": fmt.Appendf(nil, "%+v %#v", h.Config, h.Config),
	})
}

// memoryOfGuests can only be read on Linux.
const memoryOfGuests = "the memory of guests"

// findSecrets looks for the planted secrets, in the forms in which they might come.
func findSecrets(t *testing.T, places map[string][]byte) {
	t.Helper()
	for where, text := range places {
		if len(text) == 0 && (where != memoryOfGuests || runtime.GOOS == "linux") {
			t.Errorf("%s is empty", where)
		}
		lower := bytes.ToLower(text)
		for _, secret := range planted() {
			for _, form := range []string{
				secret, url.QueryEscape(secret), base64.RawStdEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret)), secret[4:20],
			} {
				if i := bytes.Index(lower, bytes.ToLower([]byte(form))); i >= 0 {
					t.Errorf("%s holds a secret: …%q…", where, text[max(0, i-80):min(len(text), i+80)])
				}
			}
		}
	}
}
