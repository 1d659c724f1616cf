package rest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skep/abi"
	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
	"skep/host/internal/schema"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// seen is what the handlers of all tests have answered, for the comparison
// with the published description.
var seen struct {
	sync.Mutex
	by map[string]map[int]bool
}

func recordAnswered(h *rest.Handler) {
	seen.Lock()
	defer seen.Unlock()
	if seen.by == nil {
		seen.by = map[string]map[int]bool{}
	}
	for route, statuses := range h.Answered() {
		if seen.by[route] == nil {
			seen.by[route] = map[int]bool{}
		}
		for _, s := range statuses {
			seen.by[route][s] = true
		}
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		for _, fault := range undocumented() {
			fmt.Fprintln(os.Stderr, fault)
			code = 1
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Tokens of the principals of every test host.
const (
	operatorToken = "operator-token-0001"
	adminToken    = "admin-token-0000001"
	aliceToken    = "alice-token-0000001"
	bobToken      = "bob-token-000000001"
	agentToken    = "agent-token-0000001"
)

func newKeys(t testing.TB) *auth.Keys {
	t.Helper()
	var keys []auth.Key
	for _, k := range []struct {
		role      auth.Role
		id, token string
	}{
		{auth.Operator, "root", operatorToken}, {auth.Admin, "ada", adminToken},
		{auth.User, "alice", aliceToken}, {auth.User, "bob", bobToken}, {auth.Agent, "depot", agentToken},
	} {
		keys = append(keys, auth.NewKey(auth.Principal{Role: k.role, ID: k.id}, k.token))
	}
	set, err := auth.NewKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// testHost is a swarm of a supervisor and two workers behind a real listener, on a
// real store.
type testHost struct {
	t      *testing.T
	dir    string
	script *scriptedExecutor
	def    swarm.Definition
	// also are swarms of other tenants.
	also   []swarm.Definition
	opt    rest.Options
	limits swarm.Options
	// forward takes mail for other swarms; there are none by default.
	forward swarm.Forwarder
	// known authenticates callers, with the usual keys by default.
	known auth.Authenticator
	// wrap changes the runtime that the handler calls, if it is set.
	wrap func(rest.Runtime) rest.Runtime
	// narrow makes the sockets hold little, so that a slow reader shows.
	narrow bool

	store   *sqlite.Store
	rt      *swarm.Runtime
	handler *rest.Handler
	server  *httptest.Server
	client  *http.Client
	// drain ends the runtime, stop everything.
	drain, stop func()
}

// depotForwarder accepts mail for the swarm depot and delivers none.
type depotForwarder struct{ swarm.NoForwarder }

func (f depotForwarder) Check(ctx context.Context, from swarm.InstanceKey, to string) error {
	if to == "depot" {
		return nil
	}
	return f.NoForwarder.Check(ctx, from, to)
}

func newTestHost(t *testing.T, change ...func(*testHost)) *testHost {
	t.Helper()
	h := &testHost{t: t, dir: t.TempDir(), script: newScriptedExecutor()}
	h.def = swarm.Definition{
		Tenant: swarm.DefaultTenant, Name: "hive", Version: "1.2.3", Description: "a test",
		Keywords: []string{"k"}, Entrypoint: "boss",
		Agents: []swarm.Agent{
			{Name: "boss", Targets: []string{"math", "text"}, Entrypoint: true, CanComplete: true},
			{Name: "math", Targets: []string{"boss"}},
			{Name: "text", Targets: []string{"boss"}},
			{Name: "desk", Targets: []string{"boss"}, Entrypoint: true},
		},
		Limits: swarm.Limits{TaskMessages: 20, TaskTimeout: time.Hour, Queue: 100},
	}
	h.opt, h.forward = rest.Options{Swarm: "hive", Version: "0.0.0-test"}, swarm.NoForwarder{}
	for _, c := range change {
		c(h)
	}
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *testHost) start() {
	h.t.Helper()
	ctx := context.Background()
	store, err := sqlite.Open(ctx, h.dir, sqlite.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	set, err := schema.Load()
	if err != nil {
		h.t.Fatal(err)
	}
	h.store = store
	h.rt, err = swarm.New(ctx, store, h.script, h.forward, toolSchemas{set}, append(h.also, h.def), h.limits)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- h.rt.Run(ctx, 50*time.Millisecond) }()
	h.drain = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error("Run:", err)
		}
	})
	h.serve()
	h.stop = sync.OnceFunc(func() {
		h.drain()
		h.server.Close()
		recordAnswered(h.handler)
		if err := store.Close(); err != nil {
			h.t.Error("Close:", err)
		}
	})
}

// serve opens the listener in front of the runtime.
func (h *testHost) serve() {
	if h.known == nil {
		h.known = newKeys(h.t)
	}
	var rt rest.Runtime = h.rt
	if h.wrap != nil {
		rt = h.wrap(rt)
	}
	h.handler = rest.New(rt, h.known, h.opt)
	h.server = httptest.NewUnstartedServer(h.handler)
	h.server.Config = rest.Server(h.handler, true)
	if h.narrow {
		h.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
			return ctx
		}
	}
	h.server.Start()
	h.client = h.server.Client()
	if h.narrow {
		h.client.Transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil {
				_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
			}
			return c, err
		}}
		h.t.Cleanup(h.client.CloseIdleConnections)
	}
}

type toolSchemas struct{ set *schema.Set }

func (b toolSchemas) Tools() (tools []abi.Tool) {
	for _, t := range b.set.Tools() {
		tools = append(tools, abi.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return tools
}

func (b toolSchemas) ToolArgs(tool string, args []byte) error { return b.set.ToolArgs(tool, args) }

// request is one request in a test. The token of alice is sent unless another
// is named; "-" sends none.
type request struct {
	method, path, body string
	token              string
	header             http.Header
	host               string
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) json(t testing.TB, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), to); err != nil {
		t.Fatalf("answer %d %q is no JSON: %v", a.status, a.body, err)
	}
}

func buildRequest(ctx context.Context, base string, q request) (*http.Request, error) {
	if q.method == "" {
		q.method = http.MethodGet
	}
	var body io.Reader
	if q.body != "" {
		body = strings.NewReader(q.body)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, base+q.path, body)
	if err != nil {
		return nil, err
	}
	for name, values := range q.header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	switch q.token {
	case "":
		r.Header.Set("Authorization", "Bearer "+aliceToken)
	case "-":
	default:
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	r.Host = q.host
	return r, nil
}

// send sends a request and leaves the answer's body open.
func (h *testHost) send(ctx context.Context, q request) *http.Response {
	h.t.Helper()
	r, err := buildRequest(ctx, h.server.URL, q)
	if err != nil {
		h.t.Fatal(err)
	}
	rsp, err := h.client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return rsp
}

func (h *testHost) do(q request) answer {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a := read(h.t, h.send(ctx, q))
	judge(h.t, q, a)
	return a
}

func read(t testing.TB, rsp *http.Response) answer {
	t.Helper()
	defer rsp.Body.Close()
	raw, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{rsp.StatusCode, rsp.Header, string(raw)}
	if rsp.Header.Get("Content-Encoding") != "gzip" {
		return a
	}
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err == nil {
		raw, err = io.ReadAll(zip)
	}
	if err != nil {
		t.Fatal("an answer in gzip:", err)
	}
	a.body = string(raw)
	return a
}

// post sends POST /message with a body made of fields.
func (h *testHost) post(fields obj, header ...string) answer {
	h.t.Helper()
	return h.do(postRequest(fields, header...))
}

func postRequest(fields obj, header ...string) request {
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	q := request{method: http.MethodPost, path: "/message", body: string(raw), header: http.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		q.header.Add(header[i], header[i+1])
	}
	return q
}

// postAndWait posts and returns the response.
func (h *testHost) postAndWait(fields obj, header ...string) string {
	h.t.Helper()
	a := h.post(fields, header...)
	if a.status != http.StatusOK {
		h.t.Fatalf("POST /message = %d %s", a.status, a.body)
	}
	var body struct{ Response string }
	a.json(h.t, &body)
	return body.Response
}

// sse is one event of a stream as it was sent.
type sse struct {
	id, name, data string
}

// events splits a stream, which must be framed as the contract says.
func events(t testing.TB, raw string) []sse {
	t.Helper()
	if strings.Contains(strings.ReplaceAll(raw, "\r\n", ""), "\n") {
		t.Errorf("a line does not end in CRLF: %q", raw)
	}
	var all []sse
	blocks := strings.Split(raw, "\r\n\r\n")
	if last := blocks[len(blocks)-1]; last != "" {
		t.Errorf("the stream ends in the middle of an event: %q", last)
	}
	for _, block := range blocks[:len(blocks)-1] {
		var e sse
		for line := range strings.SplitSeq(block, "\r\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "retry":
				if len(all) > 0 {
					t.Errorf("retry stands at event %d, want the first", len(all))
				}
			default:
				t.Errorf("strange line %q", line)
			}
		}
		all = append(all, e)
	}
	return all
}

func eventNames(all []sse) []string {
	var names []string
	for _, e := range all {
		names = append(names, e.name)
	}
	return names
}

func (e sse) get(t testing.TB, field string) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(e.data), &m); err != nil {
		t.Fatalf("event %s: data %q: %v", e.name, e.data, err)
	}
	s, _ := m[field].(string)
	return s
}

// keysOf lists the keys of a JSON object in the order in which they stand.
func keysOf(t testing.TB, raw string) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader([]byte(raw)))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k.(string))
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// eventually polls a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("it never came to this: " + what)
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}
