package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

// detour redirects connections to api.openai.com to this machine.
type detour struct{ http.RoundTripper }

func (d detour) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = strings.Replace(req.URL.Host, "api.openai.com", "127.0.0.1", 1)
	return d.RoundTripper.RoundTrip(req)
}

// TestKeyInAnswer: a key that a provider repeats, in any pieces, is scrubbed.
func TestKeyInAnswer(t *testing.T) {
	quoted, _ := json.Marshal(key)
	each(t, func(t *testing.T, provider string, streamed bool) {
		for at := 1; at < len(key); at++ {
			w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{
				Text: []string{"it is " + key[:at], key[at:], " sk-pla", "in"}, Reasoning: []string{key[:at], key[at:]}, Signature: key,
				Calls: []modeltest.Call{{ID: "a", Name: "tell", Arguments: []string{`{"key":`, string(quoted[:at]), string(quoted[at:]), "}"}}},
			}))
			var said strings.Builder
			var emit func(abi.ChatPiece) error
			if streamed {
				emit = func(p abi.ChatPiece) error {
					fmt.Fprint(&said, p.Delta, p.Reasoning)
					return nil
				}
			}
			resp, err := w.open(t).Chat(t.Context(), question, "", emit)
			if err != nil {
				t.Fatal(err)
			}
			all, _ := json.Marshal(resp)
			if strings.Contains(string(all)+said.String(), key) {
				t.Fatalf("cut at %d: %s and %s", at, all, said.String())
			}
			if resp.Text != "it is [secret api_key] sk-plain" || resp.Reasoning != "[secret api_key]" || resp.ToolCalls[0].Arguments != `{"key":"[secret api_key]"}` {
				t.Errorf("cut at %d: %s", at, all)
			}
		}
	})
}

// TestNoUsage: without a reported usage, the estimate is charged.
func TestNoUsage(t *testing.T) {
	each(t, func(t *testing.T, provider string, streamed bool) {
		w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Text: []string{"1234567890"}}))
		resp, _, err := ask(t, w.open(t), question, streamed)
		most := w.spec.Estimate(question)
		if err != nil || resp.Usage.InputTokens != most.InputTokens || resp.Usage.OutputTokens != 10 || resp.Usage.MicroUSD != most.InputTokens+20 {
			t.Errorf("got %+v, %v", resp.Usage, err)
		}
	})
}

// TestUsageThatCannotBe: an impossible count costs the estimate. Sums of it would
// overflow.
func TestUsageThatCannotBe(t *testing.T) {
	const most = math.MaxInt64
	for _, u := range []abi.ChatUsage{
		{InputTokens: most, OutputTokens: 1}, {InputTokens: 1, OutputTokens: most}, {InputTokens: most, CachedTokens: most, CacheWriteTokens: most, OutputTokens: most},
	} {
		each(t, func(t *testing.T, provider string, streamed bool) {
			w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Text: []string{"Hi"}, Usage: &u}))
			resp, _, err := ask(t, w.open(t), question, streamed)
			if err != nil || resp.Usage != w.spec.Estimate(question) {
				t.Errorf("%+v: got %+v, %v", u, resp.Usage, err)
			}
		})
	}
}

// TestUsageOfFiles: counts in a cassette or a script are not trusted either and give no
// budget back.
func TestUsageOfFiles(t *testing.T) {
	none := abi.ChatUsage{}
	m := script(t, "[[rule]]\ntext = \"Hi\"\nusage = { input_tokens = -5_000_000, cached_tokens = -1, output_tokens = -5_000_000 }\n")
	if resp, _, err := ask(t, m, question, true); err != nil || resp.Usage != none {
		t.Errorf("a script: %+v, %v", resp.Usage, err)
	}
	request, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	path := temp(t, "tape.jsonl")
	line := `{"request":` + string(request) + `,"answer":{"text":"Hi","finish":"stop","usage":{"input_tokens":-9,"output_tokens":-9,"micro_usd":-9000000}}}`
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err = model.Open(model.Spec{Name: "default", Provider: model.Script, Cassette: path}, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if resp, _, err := ask(t, m, question, true); err != nil || resp.Usage != none {
		t.Errorf("a cassette: %+v, %v", resp.Usage, err)
	}
}

func TestAbsurdUsage(t *testing.T) {
	each(t, func(t *testing.T, provider string, streamed bool) {
		w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Usage: &abi.ChatUsage{InputTokens: -5, CachedTokens: 7, OutputTokens: -1, ReasoningTokens: 3}}))
		resp, _, err := ask(t, w.open(t), question, streamed)
		u := resp.Usage
		if err != nil || u.InputTokens < 0 || u.CachedTokens > u.InputTokens || u.OutputTokens < 0 || u.ReasoningTokens > u.OutputTokens || u.MicroUSD < 0 {
			t.Errorf("got %+v, %v", u, err)
		}
	})
}

// TestForeignCalls covers deviations of compatible servers in streams of tool calls.
func TestForeignCalls(t *testing.T) {
	call := func(parts string) string {
		return `data: {"choices":[{"index":0,"delta":{"tool_calls":[` + parts + `]}}]}` + "\n\n"
	}
	const end = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	for _, c := range []struct{ name, body, want string }{
		{"every index is 0", call(`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}`) + call(`{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}`),
			`[{"id":"a","name":"x","arguments":"{}"},{"id":"b","name":"y","arguments":"{}"}]`},
		{"no ids", call(`{"index":0,"function":{"name":"x","arguments":"{"}},{"index":1,"function":{"name":"y","arguments":""}}`) + call(`{"index":0,"function":{"arguments":"}"}}`),
			`[{"id":"call_2_0","name":"x","arguments":"{}"},{"id":"call_2_1","name":"y","arguments":""}]`},
		{"the id again", call(`{"index":0,"id":"a","function":{"name":"x","arguments":"{"}}`) + call(`{"index":0,"id":"a","function":{"arguments":"}"}}`),
			`[{"id":"a","name":"x","arguments":"{}"}]`},
		{"the name later", call(`{"index":0,"id":"a","function":{"arguments":""}}`) + call(`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}`),
			`[{"id":"a","name":"x","arguments":"{}"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, model.OpenAI, modeltest.InOrder(modeltest.Reply{Body: c.body + end, Type: "text/event-stream"}))
			resp, _, err := ask(t, w.open(t), question, true)
			if err != nil || resp.Finish != abi.FinishToolCalls {
				t.Fatalf("got %+v, %v", resp, err)
			}
			raw, _ := json.Marshal(resp.ToolCalls)
			if string(raw) != c.want {
				t.Errorf("got %s", raw)
			}
		})
	}
}

// TestForeignReasoning: some servers use the field "reasoning", some send both fields.
func TestForeignReasoning(t *testing.T) {
	const body = `data: {"choices":[{"index":0,"delta":{"reasoning":"I think","reasoning_details":[{}]}}]}

data: {"choices":[{"index":0,"delta":{"reasoning":null,"content":"So."},"finish_reason":"eos"}]}

`
	w := newWorld(t, model.OpenAI, modeltest.InOrder(modeltest.Reply{Body: body, Type: "text/event-stream"}))
	text, thought, resp := modeltest.Collect(t, w.open(t), question)
	if text != "So." || thought != "I think" || resp.Finish != abi.FinishStop || resp.Carry != nil {
		t.Errorf("got %q, %q, %s, to carry %s", text, thought, resp.Finish, resp.Carry)
	}
}

// TestEmitEnds: a held-back suffix is emitted at the end, and an error of that emit ends
// the call as well.
func TestEmitEnds(t *testing.T) {
	for name, reply := range map[string]modeltest.Reply{
		"text": {Text: []string{"sk-"}}, "reasoning": {Reasoning: []string{"sk-"}, Signature: "s"},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, provider string, _ bool) {
				w := newWorld(t, provider, modeltest.InOrder(reply, reply))
				m := w.open(t)
				text, thought, _ := modeltest.Collect(t, m, question)
				if text+thought != "sk-" {
					t.Errorf("got %q and %q", text, thought)
				}
				enough := errors.New("enough")
				if _, err := m.Chat(t.Context(), question, "", func(abi.ChatPiece) error { return enough }); !errors.Is(err, enough) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestHugeCarry: the carried reasoning has a limit of its own.
func TestHugeCarry(t *testing.T) {
	w := newWorld(t, model.Anthropic, modeltest.InOrder(modeltest.Reply{Redacted: strings.Repeat("x", 3<<19)}))
	_, _, err := ask(t, w.open(t), question, true)
	failed(t, err, model.TooLarge, "to hand back has more than 1048576 bytes")
}

// TestManyBlocks: the number of empty blocks is bounded.
func TestManyBlocks(t *testing.T) {
	const block = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	w := newWorld(t, model.Anthropic, modeltest.InOrder(modeltest.Reply{Body: strings.Repeat(block, 4097), Type: "text/event-stream"}))
	_, _, err := ask(t, w.open(t), question, true)
	failed(t, err, model.TooLarge, "more than 4096 blocks")
}
