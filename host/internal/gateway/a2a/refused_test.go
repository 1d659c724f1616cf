package a2a_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/a2a"
	"skep/host/internal/gateway/gatewaytest"
)

// sendBody is a JSON-RPC request with a message.
func sendBody(message string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":` + message + `}}`
}

const hello = `{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}`

// TestRefusedBodies: what has no or several readings, or is beyond a limit, is refused in
// the protocol's form before the runtime sees it, and has a line in the log (G-058).
func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *a2a.Options) { o.MaxBody, o.MaxDepth = 64<<10, 10 })
	s.expose("echo", func(context.Context, *gatewaytest.Turn) gateway.Answer {
		t.Error("a refused message reached the agent")
		return gateway.Answer{}
	})
	parts := strings.TrimSuffix(strings.Repeat(`{"text":"x"},`, 101), ",")
	var lines []gateway.Event
	deep := strings.Repeat("[", 20) + strings.Repeat("]", 20)
	for name, c := range map[string]struct {
		body, want string
		code       int
	}{
		"not JSON":        {"{", "is not JSON", -32700},
		"two values":      {sendBody(hello) + "{}", "is not JSON", -32700},
		"member twice":    {sendBody(`{"messageId":"m1","messageId":"m2"}`), `has the member \"messageId\" twice`, -32700},
		"broken UTF-8":    {sendBody("\"\xff\""), "is not valid UTF-8", -32700},
		"too deep":        {sendBody(deep), "is nested deeper than max_depth of [gateways.a2a]", -32700},
		"no message":      {`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}`, "has no message", -32602},
		"no id":           {sendBody(`{"role":"ROLE_USER","parts":[{"text":"hi"}]}`), "messageId must have", -32602},
		"long id":         {sendBody(`{"messageId":"` + strings.Repeat("x", 257) + `","role":"ROLE_USER","parts":[{"text":"hi"}]}`), "messageId must have", -32602},
		"long context":    {sendBody(`{"messageId":"m1","contextId":"` + strings.Repeat("x", 257) + `","role":"ROLE_USER","parts":[{"text":"hi"}]}`), "contextId must have", -32602},
		"an agent's role": {sendBody(`{"messageId":"m1","role":"ROLE_AGENT","parts":[{"text":"hi"}]}`), "role must be ROLE_USER", -32602},
		"no parts":        {sendBody(`{"messageId":"m1","role":"ROLE_USER","parts":[]}`), "parts must have 1 to 100", -32602},
		"many parts":      {sendBody(`{"messageId":"m1","role":"ROLE_USER","parts":[` + parts + `]}`), "parts must have 1 to 100", -32602},
		"null part":       {sendBody(`{"messageId":"m1","role":"ROLE_USER","parts":[null]}`), "a part is null", -32602},
		"no such task":    {sendBody(`{"messageId":"m1","taskId":"~","role":"ROLE_USER","parts":[{"text":"hi"}]}`), "no such task", -32001},
		"no method":       {`{"jsonrpc":"2.0","id":1,"method":"Eat"}`, "method not found", -32601},
		"pictures only":   {strings.Replace(sendBody(hello), `{"message"`, `{"configuration":{"acceptedOutputModes":["image/png"]},"message"`, 1), "answers are text/plain", -32005},
	} {
		before := len(lines)
		code, text := s.post(t, "/a2a/hive/echo", token, c.body)
		if code != 200 || !strings.Contains(text, fmt.Sprintf(`"code":%d`, c.code)) || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s; want %d %s", name, code, text, c.code, c.want)
		}
		if lines = append(lines, s.rt.Events()[len(lines):]...); len(lines) != before+1 || lines[before].Verdict != "refused" || lines[before].Reason == "" || len(lines[before].Text) == 0 && name != "no message" {
			t.Errorf("%s: recorded %+v", name, lines[before:])
		}
	}
	code, text := s.post(t, "/a2a/hive/echo/message:send", token, `{"message":{},"message":{}}`)
	if code != 400 || !strings.Contains(text, "INVALID_ARGUMENT") {
		t.Errorf("REST: %d %s", code, text)
	}
	if code, _ := s.post(t, "/a2a/hive/echo", token, strings.Repeat(" ", 65<<10)); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d", code)
	}
	rest := s.rt.Events()[len(lines):]
	if len(rest) != 2 || rest[0].Type != "POST /message:send" || rest[1].Verdict != "refused" || !strings.Contains(rest[1].Reason, "max_body") {
		t.Errorf("recorded %+v", rest)
	}
}

// TestNoMessageV03: a message of version 0.3 that is not there is refused, with a line in the
// log, also beside a push address: the library reads the message's task then.
func TestNoMessageV03(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *a2a.Options) { o.Push, o.PushClient = true, &http.Client{} })
	for i, params := range []string{`{}`, `{"message":null}`, `{"configuration":{"pushNotificationConfig":{"url":"https://x.example"}}}`} {
		for j, method := range []string{"message/send", "message/stream"} {
			_, text := s.post(t, "/a2a/hive/echo", token, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, "A2A-Version", "0.3")
			lines := s.rt.Events()
			if !strings.Contains(text, `"code":-32602`) || !strings.Contains(text, "no message") || len(lines) != 2*i+j+1 || lines[2*i+j].Verdict != "refused" {
				t.Errorf("%s %s: %s, recorded %+v", method, params, text, lines)
			}
		}
	}
}

// TestUnknownAgents: an agent that does not exist, is hidden, or is another tenant's gives
// the same bytes as a path that does not exist.
func TestUnknownAgents(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.rt.Expose("other", gateway.ExposedAgent{Swarm: "hive", Name: "theirs", Entrypoint: true}, gatewaytest.Echo)
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "inner"}, gatewaytest.Echo)
	for _, path := range []string{"/a2a/hive/none", "/a2a/hive/theirs", "/a2a/hive/inner", "/a2a/nowhere/echo", "/a2a/hive", "/a2a/hive/theirs/message:send"} {
		if code, text := s.post(t, path, token, sendBody(hello)); code != 404 || text != `{"detail":"Not Found"}` {
			t.Errorf("%s: %d %q", path, code, text)
		}
	}
	if code, _ := s.post(t, "/a2a/hive/inner", realmToken, sendBody(hello)); code != 200 {
		t.Errorf("a realm does not reach an agent that is no entrypoint: %d", code)
	}
	if code, _ := s.post(t, "/a2a/hive/echo", "wrong", sendBody(hello)); code != 401 {
		t.Errorf("a wrong token: %d", code)
	}
	for name, want := range map[string]string{
		"theirs": `there is no agent "hive/theirs"`, "inner": `there is no agent "hive/inner"`, "ehco": `there is no agent "hive/ehco"; did you mean "hive/echo"?`,
	} {
		_, err := s.client(t, bindings[2], name, token).SendMessage(t.Context(), request("x"))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("gRPC: %v, want %s", err, want)
		}
	}
}

// TestTasksOfOthers: a task is found by its caller and at its agent only, and by no id
// that taskID does not make.
func TestTasksOfOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	task := send(t, s.client(t, bindings[0], "echo", token), request("x"))
	for name, c := range map[string]struct{ agent, token string }{"realm": {"echo", realmToken}, "agent": {"slow", token}} {
		_, err := s.client(t, bindings[0], c.agent, c.token).GetTask(t.Context(), &sdk.GetTaskRequest{ID: task.ID})
		if !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Errorf("another %s reads a task: %v", name, err)
		}
	}
	odd := request("x")
	odd.Message.ID = "a/b ü"
	c := s.client(t, bindings[1], "echo", token)
	task = send(t, c, odd)
	if again, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: task.ID}); err != nil || again.ID != task.ID {
		t.Errorf("a message with an odd id has task %q, which leads to %+v, %v", task.ID, again, err)
	}
}

// TestTasksWithoutAgent: a request over gRPC that names no agent reads the tasks of those
// agents that the caller sees now, and no others.
func TestTasksWithoutAgent(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	seen, hidden := send(t, s.client(t, bindings[2], "echo", token), request("x")), send(t, s.client(t, bindings[2], "fails", token), request("x"))
	s.rt.Hide("acme", "hive", "fails")
	c := s.client(t, bindings[2], "", token)
	if _, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: seen.ID}); err != nil {
		t.Errorf("the task of an agent that is seen: %v", err)
	}
	if _, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: hidden.ID}); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("the task of a hidden agent: %v", err)
	}
	list, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{})
	if err != nil || len(list.Tasks) != 1 || list.Tasks[0].ID != seen.ID {
		t.Errorf("listed %+v, %v", list, err)
	}
}

// TestOddNames: an agent whose name an address escapes is reached over each binding.
func TestOddNames(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expose("tea%:ü", gatewaytest.Echo)
	for _, b := range bindings {
		if task := send(t, s.client(t, b, "tea%:ü", token), request("x")); answer(t, task) != "x" {
			t.Errorf("%s: %+v", b.name, task)
		}
	}
}

// TestDepth: max_depth bounds the data of a message over each binding.
func TestDepth(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *a2a.Options) { o.MaxDepth = 10 })
	for _, b := range bindings {
		c := s.client(t, b, "echo", token)
		for depth, taken := range map[int]bool{4: true, 12: false} {
			var data any = "x"
			for range depth {
				data = map[string]any{"x": data}
			}
			req := request("x")
			req.Message.Parts = append(req.Message.Parts, sdk.NewDataPart(data))
			if _, err := c.SendMessage(t.Context(), req); (err == nil) != taken {
				t.Errorf("%s: data of depth %d: %v", b.name, depth, err)
			}
		}
	}
}

// TestConflict: other bytes under a used id are refused.
func TestConflict(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := s.client(t, bindings[0], "echo", token)
	req := request("one")
	send(t, c, req)
	req.Message.Parts[0] = sdk.NewTextPart("two")
	if _, err := c.SendMessage(t.Context(), req); !errors.Is(err, sdk.ErrInvalidParams) {
		t.Errorf("other bytes under a used id: %v", err)
	}
}

// TestRepeatOnAnotherWay: a repeat may have come on another way. Its trace and the number of
// swarms that it has passed are other ones.
func TestRepeatOnAnotherWay(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, b := range bindings {
		c := s.client(t, b, "echo", token)
		req := request("one")
		first := send(t, c, req)
		for _, metadata := range []map[string]any{
			{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1", "skep_hops": 1},
			{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "skep_hops": 2},
		} {
			req.Message.Metadata = metadata
			if again := send(t, c, req); again.ContextID != first.ContextID {
				t.Errorf("%s: the repeat is in %s, not in %s", b.name, again.ContextID, first.ContextID)
			}
		}
		req.Message.Metadata["other"] = 1
		if _, err := c.SendMessage(t.Context(), req); !errors.Is(err, sdk.ErrInvalidParams) {
			t.Errorf("%s: other metadata under a used id: %v", b.name, err)
		}
	}
}

// TestErrors: the errors of the runtime have the protocol's codes, and a fault of the host
// is not shown.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	rpc, overGRPC := s.client(t, bindings[0], "echo", token), s.client(t, bindings[2], "echo", token)
	for _, c := range []struct {
		own, theirs error
		code        codes.Code
	}{
		{gateway.ErrInvalid, sdk.ErrInvalidParams, codes.InvalidArgument},
		{gateway.ErrDenied, sdk.ErrUnauthorized, codes.PermissionDenied},
		{gateway.ErrUnknown, sdk.ErrTaskNotFound, codes.NotFound},
		{gateway.ErrBusy, sdk.ErrServerError, codes.ResourceExhausted},
		{gateway.ErrDraining, sdk.ErrServerError, codes.Unavailable},
		{gateway.ErrElsewhere, sdk.ErrServerError, codes.Unavailable},
		{errors.New("disk on fire"), sdk.ErrInternalError, codes.Internal},
	} {
		own := fmt.Errorf("it is so: %w", c.own)
		s.rt.FailNext("Ask", own)
		_, err := rpc.SendMessage(t.Context(), request("x"))
		if !errors.Is(err, c.theirs) || strings.Contains(err.Error(), "fire") {
			t.Errorf("%v is shown as %v", c.own, err)
		}
		s.rt.FailNext("Ask", own)
		if got := grpcCode(t, s, overGRPC); got != c.code {
			t.Errorf("%v is shown over gRPC as %v, want %v", c.own, got, c.code)
		}
	}
}

// grpcCode is the code of the error that a message over gRPC gets.
func grpcCode(t *testing.T, s *site, c interface {
	SendMessage(context.Context, *sdk.SendMessageRequest) (sdk.SendMessageResult, error)
}) codes.Code {
	t.Helper()
	_, err := c.SendMessage(t.Context(), request("x"))
	if err == nil {
		return codes.OK
	}
	for code, sentinel := range map[codes.Code]error{
		codes.InvalidArgument: sdk.ErrInvalidParams, codes.PermissionDenied: sdk.ErrUnauthorized, codes.NotFound: sdk.ErrTaskNotFound,
	} {
		if errors.Is(err, sentinel) {
			return code
		}
	}
	if strings.Contains(err.Error(), "the host could not do this") {
		return codes.Internal
	}
	if strings.Contains(err.Error(), gateway.ErrBusy.Error()) {
		return codes.ResourceExhausted
	}
	return status.Code(status.Error(codes.Unavailable, err.Error()))
}

// TestVersions: 1.0 and 0.3 are served, a request without a version is of 0.3, others are
// refused.
func TestVersions(t *testing.T) {
	t.Parallel()
	const oldHello = `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"hi"}]}}}`
	both, one := newSite(t, nil), newSite(t, func(o *a2a.Options) { o.V03 = false })
	for _, c := range []struct {
		s                   *site
		version, body, want string
	}{
		{both, "1.0", sendBody(hello), "TASK_STATE_COMPLETED"},
		{both, "1.0.7", sendBody(hello), "TASK_STATE_COMPLETED"},
		{both, "", oldHello, `"state":"completed"`},
		{both, "0.3", oldHello, `"state":"completed"`},
		{both, "", sendBody(hello), "SendMessage is no method of version 0.3, which a request without A2A-Version has: set the header A2A-Version: 1.0"},
		{both, "2.0", sendBody(hello), "version 2.0 is not served, only 1.0, and over JSON-RPC 0.3"},
		{one, "1.0", sendBody(hello), "TASK_STATE_COMPLETED"},
		{one, "", sendBody(hello), "version 0.3 is not served, only 1.0"},
		{one, "0.3", sendBody(hello), `"code":-32009`},
	} {
		if _, text := c.s.post(t, "/a2a/hive/echo", token, c.body, "A2A-Version", c.version); !strings.Contains(text, c.want) {
			t.Errorf("version %q: %s; want %s", c.version, text, c.want)
		}
		if strings.Contains(c.body, "m1") {
			c.s.rt.Admit(token, gatewaytest.User("acme", "ann"+c.version)) // ids belong to their caller
		}
	}
}

// TestRevoked: a stream ends when its caller's credential does.
func TestRevoked(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := s.client(t, bindings[0], "slow", token)
	for event, err := range c.SendStreamingMessage(t.Context(), request("go")) {
		if err != nil {
			break
		}
		if show(event) == "task TASK_STATE_WORKING" {
			s.rt.Revoke(token)
		}
	}
	if code, _ := s.post(t, "/a2a/hive/slow", token, sendBody(hello)); code != 401 {
		t.Errorf("a revoked token: %d", code)
	}
}

// TestList: tasks are listed newest first, page by page, of one agent and context, without
// the messages that continued one.
func TestList(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := s.client(t, bindings[0], "echo", token)
	var want []string
	for i := range 5 {
		req := request(fmt.Sprint(i))
		if i == 3 {
			req.Message.ContextID = "ctx"
		}
		want = append([]string{string(send(t, c, req).ID)}, want...)
	}
	asking := s.client(t, bindings[0], "asks", token)
	question := send(t, asking, request("x"))
	reply := request("Ann")
	reply.Message.TaskID = question.ID
	send(t, asking, reply)
	var got []string
	for page := (&sdk.ListTasksRequest{PageSize: 2}); ; {
		list, err := c.ListTasks(t.Context(), page)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range list.Tasks {
			got = append(got, string(task.ID))
			if task.Artifacts != nil {
				t.Errorf("task %s comes with artifacts nobody asked for", task.ID)
			}
		}
		if page.PageToken = list.NextPageToken; page.PageToken == "" {
			break
		}
	}
	if !equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	for _, req := range []*sdk.ListTasksRequest{{ContextID: "ctx"}, {ContextID: "ctx", Status: sdk.TaskStateCompleted, IncludeArtifacts: true}} {
		list, err := c.ListTasks(t.Context(), req)
		if err != nil || len(list.Tasks) != 1 || string(list.Tasks[0].ID) != want[1] || (list.Tasks[0].Artifacts == nil) == req.IncludeArtifacts {
			t.Errorf("of %+v: %+v, %v", req, list, err)
		}
	}
	list, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{Status: sdk.TaskStateFailed})
	if err != nil || len(list.Tasks) != 0 {
		t.Errorf("failed tasks: %+v, %v", list, err)
	}
	if list, err = asking.ListTasks(t.Context(), &sdk.ListTasksRequest{}); err != nil || len(list.Tasks) != 1 {
		t.Errorf("the agent that asked has %+v, %v", list, err)
	}
	for _, bad := range []*sdk.ListTasksRequest{{PageSize: 101}, {PageSize: -1}, {PageToken: "~x"}} {
		if _, err := c.ListTasks(t.Context(), bad); !errors.Is(err, sdk.ErrInvalidParams) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestRecords: every message, and every other request, leaves one event with its verdict.
func TestRecords(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := s.client(t, bindings[0], "echo", token)
	req := request("x")
	task := send(t, c, req)
	send(t, c, req)
	req.Message.Parts[0] = sdk.NewTextPart("y")
	_, _ = c.SendMessage(t.Context(), req)
	_, _ = c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: task.ID})
	_, _ = c.ListTasks(t.Context(), &sdk.ListTasksRequest{PageSize: -1})
	_, _ = c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: "another"})
	var got []string
	for _, e := range s.rt.Events() {
		got = append(got, e.Type+" "+e.Verdict)
	}
	if want := []string{"SendMessage accepted", "SendMessage duplicate", "SendMessage refused", "GetTask accepted", "ListTasks refused", "CancelTask refused"}; !equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}
