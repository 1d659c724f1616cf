package model_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/model"
)

// spoken is a transport that answers every request with the same bytes.
type spoken struct{ body, kind string }

func (s spoken) RoundTrip(req *http.Request) (*http.Response, error) {
	_ = req.Body.Close()
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {s.kind}},
		Body: io.NopCloser(strings.NewReader(s.body)), Request: req,
	}, nil
}

// FuzzAnswer lets a provider send anything: the answer is complete and consistent with its
// pieces, or there is an error of this package; the key never shows.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		"null", // once took the host down
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"h\",\"tool_calls\":[{\"index\":7,\"id\":\"a\",\"function\":{\"name\":\"n\",\"arguments\":\"{\"}}]}}],\"usage\":{\"prompt_tokens\":-1}}\n\n",
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"n\",\"input\":{}}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		"event: error\ndata: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"" + key + "\"}}\n\n",
		`{"choices":[{"message":{"content":"Hi","tool_calls":[{"id":"a","function":{"name":"n","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
	} {
		f.Add(body, true)
		f.Add(body, false)
	}
	f.Fuzz(func(t *testing.T, body string, streamed bool) {
		for _, provider := range []string{model.OpenAI, model.Anthropic} {
			kind := "application/json"
			if streamed || provider == model.Anthropic {
				kind = "text/event-stream"
			}
			m, err := model.Open(model.Spec{Name: "default", Provider: provider, Model: "m", APIKey: key}, model.Options{Transport: spoken{body, kind}})
			if err != nil {
				t.Fatal(err)
			}
			checkAnswer(t, m, streamed)
		}
	})
}

func checkAnswer(t *testing.T, m model.Model, streamed bool) {
	var text, reasoning strings.Builder
	var emit func(abi.ChatPiece) error
	if streamed {
		emit = func(p abi.ChatPiece) error {
			text.WriteString(p.Delta)
			reasoning.WriteString(p.Reasoning)
			return nil
		}
	}
	resp, err := m.Chat(t.Context(), question, "", emit)
	if err != nil {
		var e *model.Error
		if !errors.As(err, &e) || strings.Contains(err.Error(), key) {
			t.Errorf("got %v", err)
		}
		return
	}
	if streamed && (text.String() != resp.Text || reasoning.String() != resp.Reasoning) {
		t.Errorf("the pieces are %q and %q of %+v", text.String(), reasoning.String(), resp)
	}
	if (len(resp.ToolCalls) > 0) != (resp.Finish == abi.FinishToolCalls) && resp.Finish == abi.FinishStop {
		t.Errorf("%d calls end as %s", len(resp.ToolCalls), resp.Finish)
	}
	raw, err := json.Marshal(resp)
	if err != nil || strings.Contains(string(raw), key) {
		t.Errorf("the answer is %s, %v", raw, err)
	}
}
