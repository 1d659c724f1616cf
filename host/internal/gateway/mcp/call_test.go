package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

// the answer is the result, a failure one with isError; task_id goes on.
func TestCall(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, version string) {
		h := newHost(t, mcp.Options{}, func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
			switch turn.Ask.Body {
			case "fail":
				return gateway.Answer{Outcome: gateway.Failed}
			case "parts":
				return gateway.Answer{Body: "see", Parts: []gateway.PartRef{
					turn.Part("p.png", "image/png", []byte("png")), turn.Part("a.wav", "audio/wav", []byte("wav")),
					turn.Part("t.txt", "text/plain", []byte("txt")), turn.Part("b.bin", "application/x-b", []byte("bin")),
					turn.Part("large", "application/x-b", make([]byte, 5<<20)),
				}}
			}
			return gateway.Answer{Subject: turn.Ask.Subject, Body: fmt.Sprintf(`{"said":%q,"before":%d}`, turn.Ask.Body, len(turn.History))}
		})
		s := h.connect(t, "alice", "/mcp", version, nil)
		res := calls(t, s, "calc", map[string]any{"message": "hi", "subject": "S"})
		if res.IsError || text(res) != `{"said":"hi","before":0}` || field(res, "status") != "done" || field(res, "subject") != "S" {
			t.Fatalf("result %+v", res)
		}
		task := field(res, "task_id")
		if res := calls(t, s, "calc", map[string]any{"message": "more", "task_id": task}); field(res, "data").(map[string]any)["before"] != 1.0 || field(res, "task_id") != task {
			t.Errorf("second message %+v", res)
		}
		if res := calls(t, s, "calc", map[string]any{"message": "fail"}); !res.IsError || field(res, "status") != "failed" {
			t.Errorf("failure %+v", res)
		}
		res = calls(t, s, "calc", map[string]any{"message": "parts"})
		var kinds []string
		for _, c := range res.Content {
			kinds = append(kinds, fmt.Sprintf("%T", c))
		}
		if got, want := strings.Join(kinds, " "), "*mcp.TextContent *mcp.ImageContent *mcp.AudioContent *mcp.EmbeddedResource *mcp.EmbeddedResource *mcp.TextContent"; got != want {
			t.Errorf("parts %s, want %s", got, want)
		}
		if blob := res.Content[4].(*sdk.EmbeddedResource).Resource; string(blob.Blob) != "bin" {
			t.Errorf("blob %q", blob.Blob)
		}
		for _, bad := range []map[string]any{{}, {"message": 1}, {"text": "hi"}, {"task_id": "other"}} {
			if res := calls(t, s, "calc", bad); !res.IsError {
				t.Errorf("%v: %+v", bad, res)
			}
		}
	})
}

// A message that is longer than a body may be is a part; the agent gets all of it.
func TestLongMessage(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{}, func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Body: fmt.Sprint(len(turn.Ask.Body) < 100, len(turn.Ask.Parts[0].Data))}
	})
	s := h.connect(t, "alice", "/mcp", newer, nil)
	if res := calls(t, s, "calc", map[string]any{"message": strings.Repeat("x", 300<<10)}); text(res) != "true 307200" {
		t.Errorf("result %s", text(res))
	}
}

// What the runtime refuses is told in its words; other errors show nothing internal.
func TestErrorsOfTheRuntime(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, version string) {
		h := newHost(t, mcp.Options{}, gatewaytest.Echo)
		s := h.connect(t, "alice", "/mcp", version, nil)
		for _, err := range []error{gateway.ErrBusy, gateway.ErrDenied, gateway.ErrInvalid, gateway.ErrDraining, gateway.ErrElsewhere} {
			h.FailNext("Ask", fmt.Errorf("because: %w", err))
			if res := calls(t, s, "calc", map[string]any{"message": "hi"}); !res.IsError || text(res) != "because: "+err.Error() {
				t.Errorf("%v: %+v", err, res)
			}
			h.FailNext("List", fmt.Errorf("because: %w", err))
			if _, got := s.ListResources(t.Context(), nil); got == nil || !strings.Contains(got.Error(), "because: "+err.Error()) {
				t.Errorf("resources, %v: %v", err, got)
			}
		}
		for _, method := range []string{"Ask", "Wait"} {
			h.FailNext(method, errors.New("secret: disk full"))
			_, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "calc", Arguments: map[string]any{"message": "hi"}})
			if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "internal error") {
				t.Errorf("%s: %v", method, err)
			}
		}
		h.FailNext("List", errors.New("secret: disk full"))
		if _, err := s.ListResources(t.Context(), nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("List: %v", err)
		}
	})
}

// progress reaches the client that gave a token, and its number grows.
func TestProgress(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, version string) {
		h := newHost(t, mcp.Options{}, func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
			turn.Progress("begins", -1)
			turn.Progress("half", 0.5)
			turn.Chunk("text")
			turn.Progress("back", 0.25)
			turn.Progress("end", 1)
			return gateway.Answer{Body: "done"}
		})
		got := make(chan *sdk.ProgressNotificationParams, 10)
		s := h.connect(t, "alice", "/mcp", version, &sdk.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { got <- r.Params },
		})
		p := &sdk.CallToolParams{Name: "calc", Arguments: map[string]any{"message": "hi"}}
		p.SetProgressToken("token")
		if res, err := s.CallTool(t.Context(), p); err != nil || text(res) != "done" {
			t.Fatalf("result %+v, %v", res, err)
		}
		last := 0.0
		for _, want := range []string{"begins", "half", "back", "end"} {
			p := <-got
			if p.Message != want || p.Progress <= last || p.ProgressToken != "token" {
				t.Errorf("progress %+v after %v, want %s", p, last, want)
			}
			last = p.Progress
		}
	})
}

// a cancelled call withdraws its message.
func TestCancel(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, version string) {
		begun, ended := make(chan struct{}), make(chan struct{})
		h := newHost(t, mcp.Options{}, func(ctx context.Context, _ *gatewaytest.Turn) gateway.Answer {
			close(begun)
			<-ctx.Done()
			close(ended)
			return gateway.Answer{}
		})
		s := h.connect(t, "alice", "/mcp", version, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-begun
			cancel()
		}()
		if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "calc", Arguments: map[string]any{"message": "hi"}}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		<-ended
	})
}

// A call is held for a while only; task_id alone waits on.
func TestHold(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, version string) {
		answer := make(chan struct{})
		h := newHost(t, mcp.Options{Hold: hold}, func(context.Context, *gatewaytest.Turn) gateway.Answer {
			<-answer
			return gateway.Answer{Body: "at last"}
		})
		s := h.connect(t, "alice", "/mcp", version, nil)
		res := calls(t, s, "calc", map[string]any{"message": "hi"})
		if res.IsError || field(res, "status") != "working" {
			t.Fatalf("result %+v", res)
		}
		task := field(res, "task_id")
		if res := calls(t, s, "calc", map[string]any{"task_id": task}); field(res, "status") != "working" {
			t.Errorf("waited %+v", res)
		}
		if res := calls(t, h.connect(t, "bob", "/mcp", version, nil), "calc", map[string]any{"task_id": task}); !res.IsError {
			t.Errorf("another caller: %+v", res)
		}
		close(answer)
		for res = calls(t, s, "calc", map[string]any{"task_id": task}); field(res, "status") == "working"; {
			res = calls(t, s, "calc", map[string]any{"task_id": task})
		}
		if text(res) != "at last" {
			t.Errorf("answer %+v", res)
		}
	})
}

// G-025: a repeat of a request in its session, or of a message with the client's own id,
// is the same message; another one under a used id is refused.
func TestRepeats(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	turns := 0
	h := newHost(t, mcp.Options{}, func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		mu.Lock()
		defer mu.Unlock()
		turns++
		return gateway.Answer{Body: turn.Ask.Body}
	})
	id := h.initialize(t, "alice")
	send := func(message, extra string, header ...string) string {
		t.Helper()
		_, _, body := h.post(t, "alice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calc","arguments":{"message":"`+message+`"}`+extra+`}}`, header...)
		return body
	}
	if one, two := send("x", "", "Mcp-Session-Id", id), send("x", "", "Mcp-Session-Id", id); one != two || message(t, one).Error != nil {
		t.Errorf("repeat %s, first %s", two, one)
	}
	if m := message(t, send("y", "", "Mcp-Session-Id", id)); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("another message: %+v", m)
	}
	meta := `,"_meta":{"skep/id":"k1","io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
	newerHeader := []string{"Mcp-Protocol-Version", newer, "Mcp-Method", "tools/call", "Mcp-Name", "calc"}
	if one, two := send("z", meta, newerHeader...), send("z", meta, newerHeader...); one != two || message(t, one).Error != nil {
		t.Errorf("repeat %s, first %s", two, one)
	}
	if one, two := send("z", strings.Replace(meta, `"skep/id":"k1",`, "", 1), newerHeader...), send("w", meta, newerHeader...); message(t, one).Error != nil || message(t, two).Error == nil {
		t.Errorf("a new message %s, another one %s", one, two)
	}
	mu.Lock()
	defer mu.Unlock()
	if turns != 3 {
		t.Errorf("%d turns, want 3", turns)
	}
	verdicts := ""
	for _, e := range h.Events() {
		if e.Type == "tools/call" {
			verdicts += e.Verdict + " "
		}
	}
	if want := "accepted duplicate refused accepted duplicate accepted refused "; verdicts != want {
		t.Errorf("events %s, want %s", verdicts, want)
	}
}
