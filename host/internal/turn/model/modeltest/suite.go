package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/turn/model"
)

// OpenFunc returns a model that answers a request with these replies, in order.
type OpenFunc func(t *testing.T, req abi.ChatRequest, replies ...Reply) model.Model

// Run tests what every model must do. The prices of the model must be 1, 0.5 and 2 dollars
// per million tokens.
func Run(t *testing.T, open OpenFunc) {
	for _, c := range []struct {
		name  string
		reply Reply
		want  abi.ChatResponse
	}{
		{"text", Reply{Text: []string{"Hello ", "you ", "<there> & \"so\" ✓"}}, abi.ChatResponse{Text: "Hello you <there> & \"so\" ✓", Finish: abi.FinishStop}},
		{"length", Reply{Text: []string{"Once "}, Finish: abi.FinishLength}, abi.ChatResponse{Text: "Once ", Finish: abi.FinishLength}},
		{"filtered", Reply{Finish: abi.FinishFiltered}, abi.ChatResponse{Finish: abi.FinishFiltered}},
		{"refused", Reply{Refusal: "I will not.", Finish: abi.FinishFiltered}, abi.ChatResponse{Text: "I will not.", Finish: abi.FinishFiltered}},
		{"nothing", Reply{}, abi.ChatResponse{Finish: abi.FinishStop}},
		{"parallel calls", Reply{Text: []string{"I look."}, Calls: []Call{
			{ID: "call_a", Name: "get_weather", Arguments: []string{`{"ci`, `ty":"Ro`, `me"}`}},
			{ID: "call_b", Name: "get_time", Arguments: []string{`{}`}},
		}}, abi.ChatResponse{Text: "I look.", Finish: abi.FinishToolCalls, ToolCalls: []abi.ChatCall{
			{ID: "call_a", Name: "get_weather", Arguments: `{"city":"Rome"}`}, {ID: "call_b", Name: "get_time", Arguments: `{}`},
		}}},
		{"arguments that are no JSON", Reply{Calls: []Call{{ID: "call_a", Name: "get_time", Arguments: []string{`{"city": "Ro`}}}},
			abi.ChatResponse{Finish: abi.FinishToolCalls, ToolCalls: []abi.ChatCall{{ID: "call_a", Name: "get_time", Arguments: `{"city": "Ro`}}}},
	} {
		c.reply.Usage = &abi.ChatUsage{InputTokens: 1000, CachedTokens: 200, OutputTokens: 50, ReasoningTokens: 10}
		c.want.Usage = *c.reply.Usage
		c.want.Usage.MicroUSD = 1000 // 800 at 1, 200 at 0.5 and 50 at 2, in millionths
		if c.want.ToolCalls == nil {
			c.want.ToolCalls = []abi.ChatCall{}
		}
		t.Run(c.name, func(t *testing.T) { testBothForms(t, open, c.reply, c.want) })
	}
	t.Run("reasoning", func(t *testing.T) { testReasoning(t, open) })
	t.Run("an error of emit", func(t *testing.T) { testEmitError(t, open) })
	t.Run("a caller who is gone", func(t *testing.T) { testCallerGone(t, open) })
	t.Run("many at once", func(t *testing.T) { testConcurrent(t, open) })
}

// testBothForms requests the answer whole and streamed.
func testBothForms(t *testing.T, open OpenFunc, reply Reply, want abi.ChatResponse) {
	req := Question("What now?")
	m := open(t, req, reply, reply)
	got, err := m.Chat(t.Context(), req, "key-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("whole (-want +got)\n%s", diff)
	}
	text, reasoning, got := Collect(t, m, req)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("streamed (-want +got)\n%s", diff)
	}
	if text != want.Text || reasoning != want.Reasoning {
		t.Errorf("the pieces are %q and %q", text, reasoning)
	}
}

// Question is a request with a system message and one user message.
func Question(text string) abi.ChatRequest {
	return abi.ChatRequest{Model: "default", Messages: []abi.ChatMessage{{Role: abi.RoleSystem, Content: "Be brief."}, {Role: abi.RoleUser, Content: text}}}
}

// Collect requests a streamed answer and joins the pieces.
func Collect(t *testing.T, m model.Model, req abi.ChatRequest) (text, reasoning string, resp abi.ChatResponse) {
	t.Helper()
	var said, thought strings.Builder
	resp, err := m.Chat(t.Context(), req, "key-1", func(p abi.ChatPiece) error {
		if p.End != nil || (p.Delta == "") == (p.Reasoning == "") {
			t.Errorf("a piece is %+v", p)
		}
		said.WriteString(p.Delta)
		thought.WriteString(p.Reasoning)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return said.String(), thought.String(), resp
}

func testReasoning(t *testing.T, open OpenFunc) {
	req := Question("Why?")
	m := open(t, req, Reply{Reasoning: []string{"I think ", "so."}, Signature: "sig", Text: []string{"Because."}})
	text, thought, resp := Collect(t, m, req)
	if text != "Because." || thought != "I think so." || resp.Reasoning != thought || resp.Text != text {
		t.Errorf("got %q, %q and %+v", text, thought, resp)
	}
	if resp.Carry != nil && !json.Valid(resp.Carry) {
		t.Errorf("to carry: %s", resp.Carry)
	}
}

func testEmitError(t *testing.T, open OpenFunc) {
	req := Question("Go on?")
	m := open(t, req, Reply{Text: []string{"one ", "two "}})
	enough := errors.New("enough")
	calls := 0
	_, err := m.Chat(t.Context(), req, "key-1", func(abi.ChatPiece) error { calls++; return enough })
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("after %d pieces: %v", calls, err)
	}
}

func testCallerGone(t *testing.T, open OpenFunc) {
	req := Question("Hello?")
	m := open(t, req, Reply{Text: []string{"one"}})
	why := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := m.Chat(ctx, req, "key-1", nil); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func testConcurrent(t *testing.T, open OpenFunc) {
	const callers = 8
	req := Question("Hello?")
	replies := make([]Reply, callers)
	for i := range replies {
		replies[i] = Reply{Text: []string{"Hel", "lo"}}
	}
	m := open(t, req, replies...)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if resp, err := m.Chat(t.Context(), req, "", func(abi.ChatPiece) error { return nil }); err != nil || resp.Text != "Hello" {
				t.Errorf("got %q, %v", resp.Text, err)
			}
		})
	}
	wg.Wait()
}
