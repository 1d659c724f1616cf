package rest_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
	"skep/host/internal/swarm"
)

// statusProducer has a host for each kind of trouble.
type statusProducer struct {
	t *testing.T
	// well is a host with a task "done" of alice's and one "busy" that runs.
	well *testHost
	// closed is a host that goes down, empty one without a swarm.
	closed, empty http.Handler
	slow          *testHost
	// shut is a host with debug off.
	shut http.Handler
	// stuck is a host whose file is at fault.
	stuck http.Handler
}

func newStatusProducer(t *testing.T) *statusProducer {
	l := &statusProducer{t: t}
	l.well = newTestHost(t, func(h *testHost) {
		h.forward = depotForwarder{}
		h.opt.Loopback, h.opt.MaxBody, h.def.Public = true, 4096, true
		h.def.Interswarm, h.def.Agents[0].Interswarm, h.def.Agents[0].Targets = true, true, []string{"math", "text", "*@*"}
		h.limits.Quarantine = quarantineStub{"math"}
		h.opt.Debug, h.opt.Registry, h.opt.Definitions = true, newFakeRegistry(), fakeDefinitions{}
		h.opt.Tenants, h.opt.ConfigFile, h.opt.Gateways = broom{}, fakeConfigFile{}, twoTenants{}
		h.opt.Cluster = fakeCluster{}
		h.opt.Tokens, h.opt.Looks = presetTokens{openTokens(t)}, rest.NewLooks([]byte("a secret"), false)
	})
	l.slow = newTestHost(t, func(h *testHost) { h.opt.Stall, h.opt.Debug = 50*time.Millisecond, true })
	l.well.postAndWait(obj{"task_id": "done", "body": "b"})
	l.well.addDeadLetter("done")
	l.well.postAndWait(obj{"task_id": "paused", "body": calls("ask", []string{"confirm"})})
	l.well.do(request{method: "POST", path: "/interswarm/forward", token: agentToken, body: wrapper("message_id", "first")})
	l.well.post(obj{"task_id": "busy", "body": calls("gate", obj{"name": "never"})}, "Prefer", "respond-async")
	l.closed = rest.New(failingRuntime{err: swarm.ErrDraining}, newKeys(t), rest.Options{Swarm: "hive", Debug: true})
	l.empty = rest.New(failingRuntime{err: swarm.ErrNotFound}, newKeys(t), rest.Options{Swarm: "hive", Debug: true})
	l.stuck = rest.New(l.well.rt, newKeys(t), rest.Options{Swarm: "hive", ConfigFile: fakeConfigFile{err: &swarm.Refusal{Kind: swarm.ErrConflict, Text: "the file is at fault"}}})
	l.shut = rest.New(l.well.rt, newKeys(t), rest.Options{Swarm: "hive"})
	return l
}

// deadID is the id of the dead letter that addDeadLetter adds.
const deadID = "7c9d8d2f-6f0e-4a39-9f5e-0d2c6a1c7b11"

// addDeadLetter gives a task of alice's a dead letter.
func (h *testHost) addDeadLetter(task string) {
	h.t.Helper()
	key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "default", Swarm: "hive", Instance: "user:alice"}, Task: task}
	snap, err := h.store.Load(h.t.Context(), key)
	if err != nil {
		h.t.Fatal(err)
	}
	d := newDeadLetterRuntime().letters[0].OutboxMessage
	d.N, d.ID, snap.Task.OutboxMessages = 1, deadID, 1
	if err := h.store.Commit(h.t.Context(), swarm.Mutation{Task: snap.Task, Outbox: []swarm.OutboxMessage{d}}); err != nil {
		h.t.Fatal(err)
	}
}

// quarantineStub is a quarantine that one agent never leaves.
type quarantineStub struct{ agent string }

func (c quarantineStub) Reason(_, _, agent string) (string, bool) { return "a test", false }
func (c quarantineStub) Confine(_, _, _, _, _ string) error       { return nil }
func (c quarantineStub) Release(_, _, agent string) (bool, error) { return agent == c.agent, nil }

// good are requests that succeed, by operation; their paths need no more.
var good = map[string]request{
	"GET /":                                       {path: "/", token: "-"},
	"GET /health":                                 {path: "/health", token: "-"},
	"POST /health":                                {path: "/health", token: adminToken, body: `{"status":"healthy"}`},
	"GET /status":                                 {path: "/status"},
	"GET /whoami":                                 {path: "/whoami"},
	"POST /message":                               {path: "/message", body: `{"body":"b","show_events":true}`},
	"GET /tasks":                                  {path: "/tasks"},
	"GET /tasks/{task_id}":                        {path: "/tasks/done"},
	"GET /task":                                   {path: "/task", body: `{"task_id":"done"}`},
	"GET /swarms":                                 {path: "/swarms", token: "-"},
	"POST /swarms":                                {path: "/swarms", token: adminToken, body: `{"name":"depot","base_url":"https://depot.example","auth_token":null}`},
	"POST /swarms/register":                       {path: "/swarms/register", token: adminToken, body: `{"swarm_name":"depot","base_url":"https://depot.example","volatile":false}`},
	"GET /swarms/dump":                            {path: "/swarms/dump", token: adminToken},
	"POST /swarms/load":                           {path: "/swarms/load", token: adminToken, body: `{"json":"{}"}`},
	"POST /interswarm/forward":                    {path: "/interswarm/forward", token: agentToken, body: wrapper()},
	"POST /interswarm/back":                       {path: "/interswarm/back", token: agentToken, body: wrapper("task_contributors", []string{"user:carol@depot", "swarm:depot@hive"})},
	"POST /interswarm/message":                    {path: "/interswarm/message", body: `{"user_token":"u","body":"b","targets":["boss"]}`},
	"POST /interswarm/response":                   {path: "/interswarm/response", token: "-"},
	"GET /openapi.json":                           {path: "/openapi.json", token: "-"},
	"GET /docs":                                   {path: "/docs", token: "-"},
	"POST /responses":                             {path: "/responses", body: `{"input":[{"role":"user","content":"hello"}],"tools":[]}`},
	"GET /ui/agents":                              {path: "/ui/agents"},
	"POST /ui/message":                            {path: "/ui/message", body: `{"body":"b","stream":false}`},
	"GET /ui/tasks":                               {path: "/ui/tasks"},
	"GET /ui/task/{task_id}":                      {path: "/ui/task/done"},
	"GET /ui/task-summary/{task_id}":              {path: "/ui/task-summary/done"},
	"GET /ui/dump-events":                         {path: "/ui/dump-events"},
	"GET /skep/v1/version":                        {path: "/skep/v1/version"},
	"GET /skep/v1/tasks":                          {path: "/skep/v1/tasks?limit=1"},
	"GET /skep/v1/tasks/{task_id}":                {path: "/skep/v1/tasks/done"},
	"GET /skep/v1/tasks/{task_id}/events":         {path: "/skep/v1/tasks/done/events"},
	"GET /skep/v1/tasks/{task_id}/history":        {path: "/skep/v1/tasks/done/history?agent=boss"},
	"GET /skep/v1/tasks/{task_id}/turns":          {path: "/skep/v1/tasks/done/turns"},
	"GET /skep/v1/tasks/{task_id}/mail":           {path: "/skep/v1/tasks/done/mail"},
	"POST /skep/v1/tasks/{task_id}/look":          {path: "/skep/v1/tasks/done/look?instance=user:alice", token: adminToken, body: `{"reason":"a test"}`},
	"POST /skep/v1/tasks/{task_id}/cancel":        {path: "/skep/v1/tasks/busy/cancel"},
	"GET /skep/v1/tenants":                        {path: "/skep/v1/tenants?limit=1", token: adminToken},
	"POST /skep/v1/tenants/{tenant}/erase":        {path: "/skep/v1/tenants/acme/erase", token: operatorToken},
	"POST /skep/v1/agents/{agent}/release":        {path: "/skep/v1/agents/math/release?tenant=default", token: operatorToken},
	"GET /skep/v1/tokens":                         {path: "/skep/v1/tokens?limit=1", token: adminToken},
	"POST /skep/v1/tokens":                        {path: "/skep/v1/tokens", token: adminToken, body: `{"role":"agent","id":"depot"}`},
	"DELETE /skep/v1/tokens/{token_id}":           {path: "/skep/v1/tokens/" + paperID, token: operatorToken},
	"GET /skep/v1/definition":                     {path: "/skep/v1/definition", token: adminToken},
	"DELETE /skep/v1/definition":                  {path: "/skep/v1/definition", token: adminToken},
	"GET /skep/v1/peers":                          {path: "/skep/v1/peers", token: adminToken},
	"GET /skep/v1/gateways":                       {path: "/skep/v1/gateways", token: adminToken},
	"GET /skep/v1/gateways/{name}":                {path: "/skep/v1/gateways/a2a", token: adminToken},
	"POST /skep/v1/partners/{name}/ping":          {path: "/skep/v1/partners/shop/ping", token: adminToken},
	"GET /skep/v1/dead-letters":                   {path: "/skep/v1/dead-letters?limit=1", token: adminToken},
	"POST /skep/v1/dead-letters/{id}/resend":      {path: "/skep/v1/dead-letters/" + deadID + "/resend", token: adminToken},
	"DELETE /skep/v1/peers/{name}":                {path: "/skep/v1/peers/depot", token: adminToken},
	"POST /skep/v1/peers/{name}/ping":             {path: "/skep/v1/peers/depot/ping", token: adminToken},
	"GET /skep/v1/pulse":                          {path: "/skep/v1/pulse?limit=1"},
	"GET /skep/v1/questions":                      {path: "/skep/v1/questions?limit=1"},
	"GET /skep/v1/log/level":                      {path: "/skep/v1/log/level", token: operatorToken},
	"POST /skep/v1/log/level":                     {path: "/skep/v1/log/level", token: operatorToken, body: `{"level":"debug"}`},
	"GET /skep/v1/usage":                          {path: "/skep/v1/usage?by=agent", token: adminToken},
	"POST /skep/v1/questions/answer":              {path: "/skep/v1/questions/answer", body: `{"task_id":"paused","call_id":"t1.c1","content":"yes"}`},
	"GET /skep/v1/plan":                           {path: "/skep/v1/plan", token: operatorToken},
	"POST /skep/v1/reload":                        {path: "/skep/v1/reload", token: operatorToken},
	"GET /skep/v1/cluster":                        {path: "/skep/v1/cluster", token: operatorToken},
	"POST /skep/v1/cluster/hosts/{host_id}/drain": {path: "/skep/v1/cluster/hosts/8/drain", token: operatorToken},
	"POST /skep/v1/cluster/finalize":              {path: "/skep/v1/cluster/finalize", token: operatorToken},
}

// bad are requests that are malformed, unknown or in conflict.
var bad = map[string]request{
	"POST /health 400":                                {path: "/health", token: adminToken, body: `{}`},
	"POST /message 400":                               {path: "/message", body: `{}`},
	"POST /message 404":                               {path: "/message", body: `{"body":"b","task_id":"x","resume_from":"user_response"}`},
	"GET /tasks/{task_id} 404":                        {path: "/tasks/x"},
	"GET /task 400":                                   {path: "/task", body: `{}`},
	"GET /task 404":                                   {path: "/task", body: `{"task_id":"x"}`},
	"POST /swarms 400":                                {path: "/swarms", token: adminToken, body: `{"name":"depot"}`},
	"POST /swarms 409":                                {path: "/swarms", token: adminToken, body: `{"name":"fixed","base_url":"https://x.example"}`},
	"POST /swarms/register 400":                       {path: "/swarms/register", token: adminToken, body: `{"name":"depot","base_url":"depot"}`},
	"POST /swarms/register 409":                       {path: "/swarms/register", token: adminToken, body: `{"name":"fixed","base_url":"https://x.example"}`},
	"POST /swarms/load 400":                           {path: "/swarms/load", token: adminToken, body: `{"json":"exec:"}`},
	"POST /interswarm/forward 400":                    {path: "/interswarm/forward", token: agentToken, body: `{}`},
	"POST /interswarm/forward 404":                    {path: "/interswarm/forward", token: agentToken, body: strings.Replace(wrapper("message_id", "nobody"), "boss@hive", "nobody@hive", 1)},
	"POST /interswarm/forward 409":                    {path: "/interswarm/forward", token: agentToken, body: strings.Replace(wrapper("message_id", "first"), "5b0c1b0a", "5b0c1b0b", 1)},
	"POST /interswarm/back 404":                       {path: "/interswarm/back", token: agentToken, body: wrapper("message_id", "none")},
	"POST /interswarm/back 409":                       {path: "/interswarm/back", token: agentToken, body: strings.Replace(wrapper("message_id", "first", "task_contributors", []string{"user:carol@depot", "swarm:depot@hive"}), "5b0c1b0a", "5b0c1b0b", 1)},
	"GET /skep/v1/dead-letters 400":                   {path: "/skep/v1/dead-letters?before=x", token: adminToken},
	"POST /skep/v1/dead-letters/{id}/resend 404":      {path: "/skep/v1/dead-letters/none/resend", token: adminToken},
	"GET /skep/v1/pulse 400":                          {path: "/skep/v1/pulse?kind=x"},
	"POST /skep/v1/log/level 400":                     {path: "/skep/v1/log/level", token: operatorToken, body: `{"level":"loud"}`},
	"GET /skep/v1/usage 400":                          {path: "/skep/v1/usage?by=x", token: adminToken},
	"GET /skep/v1/tenants 400":                        {path: "/skep/v1/tenants?limit=x", token: adminToken},
	"GET /skep/v1/dead-letters 404":                   {path: "/skep/v1/dead-letters?tenant=nosuch", token: operatorToken},
	"GET /skep/v1/gateways 404":                       {path: "/skep/v1/gateways?tenant=nosuch", token: operatorToken},
	"GET /skep/v1/pulse 404":                          {path: "/skep/v1/pulse?tenant=nosuch", token: operatorToken},
	"GET /skep/v1/questions 404":                      {path: "/skep/v1/questions?tenant=nosuch", token: operatorToken},
	"GET /skep/v1/tasks 404":                          {path: "/skep/v1/tasks?tenant=nosuch", token: operatorToken},
	"GET /skep/v1/usage 404":                          {path: "/skep/v1/usage?tenant=nosuch", token: operatorToken},
	"GET /skep/v1/questions 400":                      {path: "/skep/v1/questions?after=x"},
	"POST /skep/v1/questions/answer 400":              {path: "/skep/v1/questions/answer", body: `{"task_id":"paused"}`},
	"POST /skep/v1/questions/answer 404":              {path: "/skep/v1/questions/answer", body: `{"task_id":"x","call_id":"t1.c1","content":"yes"}`},
	"POST /skep/v1/questions/answer 409":              {path: "/skep/v1/questions/answer", body: `{"task_id":"done","call_id":"t1.c1","content":"yes"}`},
	"POST /interswarm/back 400":                       {path: "/interswarm/back", token: agentToken, body: `{}`},
	"POST /interswarm/message 400":                    {path: "/interswarm/message", body: `{"user_token":"u"}`},
	"POST /interswarm/message 404":                    {path: "/interswarm/message", body: `{"user_token":"u","body":"b","targets":["stock@nowhere"]}`},
	"POST /interswarm/response 410":                   {path: "/interswarm/response", token: "-"},
	"POST /responses 400":                             {path: "/responses", body: `{}`},
	"POST /responses 404":                             {path: "/responses", body: `{"input":[{"role":"user","content":"hello"}],"tools":[],"previous_response_id":"x"}`},
	"POST /ui/message 400":                            {path: "/ui/message", body: `{}`},
	"POST /ui/message 404":                            {path: "/ui/message", body: `{"body":"b","stream":false,"task_id":"x","resume_from":"user_response"}`},
	"GET /ui/task/{task_id} 404":                      {path: "/ui/task/x"},
	"GET /ui/task-summary/{task_id} 400":              {path: "/ui/task-summary/done?force_regen=maybe"},
	"GET /ui/task-summary/{task_id} 404":              {path: "/ui/task-summary/x"},
	"GET /skep/v1/tasks 400":                          {path: "/skep/v1/tasks?limit=x"},
	"GET /skep/v1/tasks/{task_id} 400":                {path: "/skep/v1/tasks/done?instance=a&instance=b"},
	"POST /skep/v1/tasks/{task_id}/cancel 400":        {path: "/skep/v1/tasks/done/cancel?instance=a&instance=b"},
	"POST /skep/v1/tasks/{task_id}/look 400":          {path: "/skep/v1/tasks/done/look?instance=user:alice", token: adminToken, body: `{}`},
	"POST /skep/v1/tasks/{task_id}/look 404":          {path: "/skep/v1/tasks/x/look?instance=user:alice", token: adminToken, body: `{"reason":"a test"}`},
	"POST /skep/v1/tasks/{task_id}/look 409":          {path: "/skep/v1/tasks/done/look", token: adminToken, body: `{"reason":"a test"}`},
	"GET /skep/v1/tasks/{task_id} 404":                {path: "/skep/v1/tasks/x"},
	"GET /skep/v1/tasks/{task_id}/events 400":         {path: "/skep/v1/tasks/done/events?after=x"},
	"GET /skep/v1/tasks/{task_id}/events 404":         {path: "/skep/v1/tasks/x/events"},
	"GET /skep/v1/tasks/{task_id}/history 400":        {path: "/skep/v1/tasks/done/history"},
	"GET /skep/v1/tasks/{task_id}/history 404":        {path: "/skep/v1/tasks/x/history?agent=boss"},
	"GET /skep/v1/tasks/{task_id}/turns 400":          {path: "/skep/v1/tasks/done/turns?limit=0"},
	"GET /skep/v1/tasks/{task_id}/turns 404":          {path: "/skep/v1/tasks/x/turns"},
	"GET /skep/v1/tasks/{task_id}/mail 400":           {path: "/skep/v1/tasks/done/mail?limit=0"},
	"GET /skep/v1/tasks/{task_id}/mail 404":           {path: "/skep/v1/tasks/x/mail"},
	"POST /skep/v1/tasks/{task_id}/cancel 404":        {path: "/skep/v1/tasks/x/cancel"},
	"POST /skep/v1/tasks/{task_id}/cancel 409":        {path: "/skep/v1/tasks/done/cancel"},
	"POST /skep/v1/tenants/{tenant}/erase 404":        {path: "/skep/v1/tenants/nobody/erase", token: operatorToken},
	"POST /skep/v1/tenants/{tenant}/erase 409":        {path: "/skep/v1/tenants/busy/erase", token: operatorToken},
	"POST /skep/v1/agents/{agent}/release 404":        {path: "/skep/v1/agents/text/release", token: operatorToken},
	"GET /skep/v1/tokens 400":                         {path: "/skep/v1/tokens?after=x", token: adminToken},
	"GET /skep/v1/tokens 404":                         {path: "/skep/v1/tokens?tenant=acme", token: adminToken},
	"POST /skep/v1/tokens 400":                        {path: "/skep/v1/tokens", token: adminToken, body: `{}`},
	"POST /skep/v1/tokens 404":                        {path: "/skep/v1/tokens", token: operatorToken, body: `{"role":"user","id":"a","tenant":"nowhere"}`},
	"POST /skep/v1/tokens 409":                        {path: "/skep/v1/tokens", token: adminToken, body: `{"role":"user","id":"greedy"}`},
	"GET /skep/v1/gateways/{name} 404":                {path: "/skep/v1/gateways/none", token: adminToken},
	"POST /skep/v1/partners/{name}/ping 404":          {path: "/skep/v1/partners/none/ping", token: adminToken},
	"DELETE /skep/v1/peers/{name} 404":                {path: "/skep/v1/peers/nobody", token: adminToken},
	"POST /skep/v1/peers/{name}/ping 404":             {path: "/skep/v1/peers/nobody/ping", token: adminToken},
	"DELETE /skep/v1/peers/{name} 409":                {path: "/skep/v1/peers/fixed", token: adminToken},
	"DELETE /skep/v1/tokens/{token_id} 404":           {path: "/skep/v1/tokens/nobody", token: operatorToken},
	"POST /skep/v1/cluster/hosts/{host_id}/drain 404": {path: "/skep/v1/cluster/hosts/9/drain", token: operatorToken},
}

// produce makes an operation answer with a status. ok is false for an unreachable
// status, so that the description lists none.
func (l *statusProducer) produce(op, status string) (a answer, ok bool) {
	method, _, _ := strings.Cut(op, " ")
	q, ok := good[op]
	q.method = method
	switch status {
	case "200", "201", "202":
		if status == "202" && strings.HasSuffix(op, "/message") {
			q.header = http.Header{"Prefer": {"respond-async"}}
		}
		return l.well.do(q), ok
	case "401":
		q.token = "-"
		return l.well.do(q), ok
	case "408":
		return l.stall(q), ok
	case "409":
		if strings.HasSuffix(op, "/plan") || strings.HasSuffix(op, "/reload") {
			return serve(l.t, l.stuck, q), ok
		}
		if strings.Contains(op, "/cluster") {
			return serve(l.t, l.shut, q), ok
		}
		if strings.HasSuffix(op, "/message") {
			q.header = http.Header{"Idempotency-Key": {"k" + op}}
			l.well.do(q)
			q.body = strings.Replace(q.body, `"b"`, `"another"`, 1)
			return l.well.do(q), true
		}
	case "413":
		q.body = `{"x":"` + strings.Repeat("x", 5000) + `"}`
		return l.well.do(q), ok
	case "415":
		q.header = http.Header{"Content-Encoding": {"gzip"}}
		return l.well.do(q), ok
	case "304":
		q.header = http.Header{"If-None-Match": {l.well.do(q).header.Get("ETag")}}
		return l.well.do(q), ok
	case "204":
		if strings.HasSuffix(op, "/events") {
			all := events(l.t, l.well.do(q).body)
			q.header = http.Header{"Last-Event-Id": {all[len(all)-1].id}}
			return l.well.do(q), ok
		}
	case "404":
		if _, there := bad[op+" 404"]; !there {
			return serve(l.t, l.shut, q), ok
		}
	case "421":
		q.host = "evil.example"
		return l.well.do(q), ok
	case "429":
		once := rest.New(l.well.rt, newKeys(l.t), rest.Options{Swarm: "hive", Debug: true, Rate: auth.Rate{Requests: 1, Per: time.Hour}})
		serve(l.t, once, q)
		return serve(l.t, once, q), ok
	case "502":
		return serve(l.t, newHandler(l.t, lost{definitionRuntime{def: &l.well.def}}), q), ok
	case "503":
		return l.unavailable(q), ok
	}
	q, ok = bad[op+" "+status]
	q.method = method
	return l.well.do(q), ok
}

// unavailable sends a request to a host that lacks a dependency: the swarm, the
// running runtime, or an auth backend.
func (l *statusProducer) unavailable(q request) answer {
	hosts := []http.Handler{l.closed, l.shut, l.empty, rest.New(failingRuntime{}, unavailableAuthenticator{}, rest.Options{Swarm: "hive"})}
	if q.token == "-" {
		hosts = []http.Handler{l.empty}
	}
	var a answer
	for _, h := range hosts {
		if a = serve(l.t, h, q); a.status == http.StatusServiceUnavailable {
			break
		}
	}
	return a
}

// stall sends a request whose body never comes. On a busy machine the answer may
// miss its own deadline, which is as short; then it tries again.
func (l *statusProducer) stall(q request) (a answer) {
	eventually(l.t, "a body that never comes is answered", func() (ok bool) {
		a, ok = l.tryStall(q)
		return ok
	})
	return a
}

func (l *statusProducer) tryStall(q request) (answer, bool) {
	r, err := buildRequest(l.t.Context(), l.slow.server.URL, q)
	if err != nil {
		l.t.Fatal(err)
	}
	c, err := net.Dial("tcp", l.slow.server.Listener.Addr().String())
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n", r.Method, r.URL.RequestURI())
	_ = r.Header.Write(c) // what is not written is not answered
	fmt.Fprint(c, "\r\n")
	rsp, err := http.ReadResponse(bufio.NewReader(c), r)
	if err != nil {
		return answer{}, false
	}
	return read(l.t, rsp), true
}
