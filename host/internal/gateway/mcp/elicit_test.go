package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

// asks is an agent that asks twice: its caller for a name, a person for a permission.
func asks(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
	name, _, err := turn.Question(ctx, gateway.Question{ID: turn.Ask.Body + "q", Text: "Who?"})
	if err != nil {
		return gateway.Answer{Outcome: gateway.Failed}
	}
	permission, failed, _ := turn.Question(ctx, gateway.Question{
		ID: turn.Ask.Body + "c", Call: turn.Ask.Body + "call", Text: "May I?",
		Schema: json.RawMessage(`{"type":"object","properties":{"yes":{"type":"boolean"}},"required":["yes"]}`),
	})
	return gateway.Answer{Body: fmt.Sprintf("%s %s %v", name, permission, failed)}
}

// questions and breakpoints are elicitations: one field, or the question's schema;
// who declines answers with an error.
func TestElicitation(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, version string) {
		h := newHost(t, mcp.Options{}, asks)
		answer := func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			properties := r.Params.RequestedSchema.(map[string]any)["properties"].(map[string]any)
			switch {
			case r.Params.Message == "Who?" && properties["answer"] != nil:
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "bob"}}, nil
			case r.Params.Message == "May I?" && properties["yes"] != nil:
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"yes": true}}, nil
			}
			return nil, fmt.Errorf("unexpected question %+v", r.Params)
		}
		s := h.connect(t, "alice", "/mcp", version, &sdk.ClientOptions{ElicitationHandler: answer})
		if res := calls(t, s, "calc", map[string]any{"message": "1"}); text(res) != `bob {"yes":true} false` {
			t.Errorf("answer %+v", res)
		}
		decline := func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "decline"}, nil
		}
		s = h.connect(t, "alice", "/mcp", version, &sdk.ClientOptions{ElicitationHandler: decline})
		if res := calls(t, s, "calc", map[string]any{"message": "2"}); text(res) != "The caller declined to answer. The caller declined to answer. true" {
			t.Errorf("answer %+v", res)
		}
	})
}

// A client that cannot ask a person learns what is asked, and answers by task_id; another
// caller cannot, and a question is answered once.
func TestQuestionsWithoutElicitation(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, version string) {
		h := newHost(t, mcp.Options{}, asks)
		s := h.connect(t, "alice", "/mcp", version, nil)
		res := calls(t, s, "calc", map[string]any{"message": "1"})
		if res.IsError || field(res, "status") != "input_required" {
			t.Fatalf("result %+v", res)
		}
		task, first := field(res, "task_id"), field(res, "questions").([]any)[0].(map[string]any)
		var kept struct{ Messages []map[string]any }
		read, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "mail://tasks/" + task.(string)})
		if err != nil || json.Unmarshal([]byte(read.Contents[0].Text), &kept) != nil || len(kept.Messages) != 1 || kept.Messages[0]["status"] != "input_required" {
			t.Errorf("the resource of the task is %+v, %v", read, err)
		}
		if first["id"] != "1q" || first["text"] != "Who?" {
			t.Errorf("question %v", first)
		}
		if res := calls(t, s, "calc", map[string]any{"task_id": task, "question_id": "other", "message": "x"}); !res.IsError {
			t.Errorf("an unknown question: %+v", res)
		}
		bob := h.connect(t, "bob", "/mcp", version, nil)
		if res := calls(t, bob, "calc", map[string]any{"task_id": task, "question_id": "1q", "message": "x"}); !res.IsError {
			t.Errorf("another caller: %+v", res)
		}
		res = calls(t, s, "calc", map[string]any{"task_id": task, "message": "eve"})
		if second := field(res, "questions").([]any)[0].(map[string]any); second["id"] != "1c" || second["schema"] == nil {
			t.Errorf("question %v", second)
		}
		if res = calls(t, s, "calc", map[string]any{"task_id": task, "question_id": "1c", "message": `{"yes":false}`}); text(res) != `eve {"yes":false} false` {
			t.Errorf("answer %+v", res)
		}
		if res := calls(t, s, "calc", map[string]any{"task_id": task, "question_id": "1c", "message": "x"}); !res.IsError {
			t.Errorf("an answered question: %+v", res)
		}
	})
}

// Calls that wait for persons at the same time get their results together.
func TestSeveralCalls(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, version string) {
		h := newHost(t, mcp.Options{}, func(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
			second := make(chan string)
			question := func(id string) string {
				text, failed, _ := turn.Question(ctx, gateway.Question{ID: turn.Ask.Body + id, Call: turn.Ask.Body + id, Text: id})
				return fmt.Sprint(id, text, failed)
			}
			go func() { second <- question("2") }()
			return gateway.Answer{Body: question("1") + " " + <-second}
		})
		s := h.connect(t, "alice", "/mcp", version, nil)
		// The two questions need not be there at once.
		res := calls(t, s, "calc", map[string]any{"message": "q"})
		task := field(res, "task_id")
		for len(field(res, "questions").([]any)) < 2 {
			res = calls(t, s, "calc", map[string]any{"task_id": task})
		}
		for _, half := range []map[string]any{{"message": "x"}, {"message": `{"q1":"a"}`}, {"message": "x", "question_id": "q1"}} {
			half["task_id"] = task
			if res := calls(t, s, "calc", half); field(res, "status") != "input_required" {
				t.Errorf("half an answer: %+v", res)
			}
		}
		if res := calls(t, s, "calc", map[string]any{"task_id": task, "message": `{"q1":"a","q2":"b"}`}); text(res) != "1afalse 2bfalse" {
			t.Errorf("answer %+v", res)
		}
	})
}

// A schema that forms cannot have becomes one field for text.
func TestNestedSchema(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{}, func(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
		given, _, _ := turn.Question(ctx, gateway.Question{ID: "q", Call: "q", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"object"}}}`)})
		return gateway.Answer{Body: given}
	})
	s := h.connect(t, "alice", "/mcp", older, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": `{"a":{}}`}}, nil
	}})
	if res := calls(t, s, "calc", map[string]any{"message": "1"}); text(res) != `{"a":{}}` {
		t.Errorf("answer %+v", res)
	}
}

// A resumed call reaches the caller's own exchanges only.
func TestForeignState(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{}, asks)
	withForm := &sdk.ClientOptions{MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true}, ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		return nil, nil
	}}
	res := calls(t, h.connect(t, "alice", "/mcp", newer, withForm), "calc", map[string]any{"message": "1"})
	if !res.NeedsInput() || res.RequestState == "" {
		t.Fatalf("result %+v", res)
	}
	bob := h.connect(t, "bob", "/mcp", newer, withForm)
	got, err := bob.CallTool(t.Context(), &sdk.CallToolParams{Name: "calc", RequestState: res.RequestState, InputResponses: sdk.InputResponseMap{
		"1q": &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "eve"}},
	}})
	if err != nil || !got.IsError {
		t.Errorf("another caller's state: %+v, %v", got, err)
	}
}
