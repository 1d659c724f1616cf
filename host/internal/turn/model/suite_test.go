package model_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

func TestOpenAI(t *testing.T)    { modeltest.Run(t, provided(model.OpenAI)) }
func TestAnthropic(t *testing.T) { modeltest.Run(t, provided(model.Anthropic)) }
func TestScript(t *testing.T)    { modeltest.Run(t, scripted) }
func TestCassette(t *testing.T)  { modeltest.Run(t, recorded) }

func provided(provider string) modeltest.OpenFunc {
	return func(t *testing.T, _ abi.ChatRequest, replies ...modeltest.Reply) model.Model {
		return newWorld(t, provider, modeltest.InOrder(replies...)).open(t)
	}
}

// scripted writes the replies as rules of a file.
func scripted(t *testing.T, req abi.ChatRequest, replies ...modeltest.Reply) model.Model {
	var b strings.Builder
	for _, r := range replies {
		fmt.Fprintf(&b, "[[rule]]\ntimes = 1\nsystem = '^Be brief'\nlast = [{ role = \"user\", is = %q }]\n", req.Messages[len(req.Messages)-1].Content)
		fmt.Fprintf(&b, "text = %q\nreasoning = %q\nfinish = %q\n", strings.Join(r.Text, "")+r.Refusal, strings.Join(r.Reasoning, ""), r.Finish)
		if u := r.Usage; u != nil {
			fmt.Fprintf(&b, "usage = { input_tokens = %d, cached_tokens = %d, output_tokens = %d, reasoning_tokens = %d }\n", u.InputTokens, u.CachedTokens, u.OutputTokens, u.ReasoningTokens)
		}
		for _, c := range r.Calls {
			fmt.Fprintf(&b, "[[rule.calls]]\nid = %q\nname = %q\narguments = %q\n", c.ID, c.Name, strings.Join(c.Arguments, ""))
		}
	}
	return script(t, b.String())
}

func script(t *testing.T, rules string) model.Model {
	t.Helper()
	path := temp(t, "rules.toml")
	if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(model.Spec{Name: "default", Provider: model.Script, Cassette: path, Prices: newWorld(t, model.OpenAI, nil).spec.Prices}, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// recorded records each reply once and replays it.
func recorded(t *testing.T, req abi.ChatRequest, replies ...modeltest.Reply) model.Model {
	w := newWorld(t, model.OpenAI, modeltest.InOrder(replies...))
	w.spec.Cassette, w.spec.Mode = temp(t, "tape.jsonl"), model.Record
	m := w.open(t)
	for range replies {
		if _, _, err := ask(t, m, req, true); err != nil {
			t.Fatal(err)
		}
	}
	w.spec.Mode, w.spec.APIKey = model.Auto, ""
	return w.open(t)
}
