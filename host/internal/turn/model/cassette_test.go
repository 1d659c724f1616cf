package model_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

const (
	idA, idB = "0197f000-0000-7000-8000-00000000000a", "0197f000-0000-7000-8000-00000000000b"
	idC, idD = "0197f000-0000-7000-8000-00000000000c", "0197f000-0000-7000-8000-00000000000d"
)

// tape records the replies to these requests, and returns a model that plays them.
func tape(t *testing.T, reqs []abi.ChatRequest, replies ...modeltest.Reply) (*world, model.Model) {
	t.Helper()
	w := newWorld(t, model.OpenAI, modeltest.InOrder(replies...))
	w.spec.Cassette, w.spec.Mode = temp(t, "tape.jsonl"), model.Record
	m := w.open(t)
	for i, req := range reqs {
		if _, _, err := ask(t, m, req, i%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
	w.spec.Mode = model.Replay
	return w, w.open(t)
}

func TestCassetteOrder(t *testing.T) {
	other := modeltest.Question("And now?")
	w, m := tape(t, []abi.ChatRequest{question, other, question}, modeltest.Reply{Text: []string{"one"}}, modeltest.Reply{Text: []string{"other"}}, modeltest.Reply{Text: []string{"tw", "o"}})
	for _, c := range []struct {
		req    abi.ChatRequest
		text   string
		pieces int
	}{{other, "other", 1}, {question, "one", 1}, {question, "two", 2}} {
		if resp, n, err := ask(t, m, c.req, true); err != nil || resp.Text != c.text || n != c.pieces {
			t.Errorf("got %q in %d pieces, %v; want %q in %d", resp.Text, n, err, c.text, c.pieces)
		}
	}
	_, _, err := ask(t, m, question, true)
	failed(t, err, model.Unexpected, `tape.jsonl has 2 answers to this request, and all were played; ask the provider itself (cassette_mode = "auto"), or record it anew`)
	raw, err := os.ReadFile(w.spec.Cassette)
	if err != nil || strings.Contains(string(raw), key) || strings.Contains(string(raw), "micro_usd") || strings.Count(string(raw), "\n") != 3 {
		t.Errorf("the file is %s, %v", raw, err)
	}
}

// TestCassetteDrift: the error shows where a prompt has changed.
func TestCassetteDrift(t *testing.T) {
	_, m := tape(t, []abi.ChatRequest{modeltest.Question("Is it far to Rome?"), question}, modeltest.Reply{}, modeltest.Reply{})
	_, _, err := ask(t, m, modeltest.Question("Is it far to Riga?"), true)
	e := failed(t, err, model.Unexpected, "The nearest, number 1, differs at: recorded")
	if !strings.Contains(e.Message, "far to Rome") || !strings.Contains(e.Message, "far to Riga") {
		t.Errorf("got %s", e.Message)
	}
	_, m = tape(t, []abi.ChatRequest{modeltest.Question("<a>\n\"1\" & 2</a>")}, modeltest.Reply{})
	_, _, err = ask(t, m, modeltest.Question("<a>\n\"1\" & 3</a>"), true)
	if e := failed(t, err, model.Unexpected, `<a> \"1\" & 3</a>`); strings.Contains(e.Message, "u003c") {
		t.Errorf("got %s", e.Message)
	}
}

// TestCassetteRemedy: the error for a request that was not recorded explains what to do.
func TestCassetteRemedy(t *testing.T) {
	w, _ := tape(t, []abi.ChatRequest{question}, modeltest.Reply{})
	for want, change := range map[string]func(*model.Spec){
		`no answer to this request; set BEE_KEY to ask the provider itself, or record it anew (cassette_mode = "record").`: func(s *model.Spec) { s.APIKey, s.KeyVar = "", "BEE_KEY" },
		`no answer to this request; give [models.default] an api_key to ask the provider itself, or record`:                func(s *model.Spec) { s.APIKey = "" },
		`no answer to this request; ask the provider itself (cassette_mode = "auto"), or record`:                           func(s *model.Spec) { s.Mode = model.Replay },
		`no answer to this request; record it anew. The nearest`:                                                           func(s *model.Spec) { s.Provider = model.Script },
	} {
		live := *w
		live.spec.Mode = model.Auto
		change(&live.spec)
		_, _, err := ask(t, live.open(t), modeltest.Question("Unheard of?"), false)
		failed(t, err, model.Unexpected, want)
	}
}

// TestCassetteIDs: ids and times change with each run. An answer contains the live ids,
// even if a piece ends within one.
func TestCassetteIDs(t *testing.T) {
	prompt := func(a, b, at string) abi.ChatRequest {
		return modeltest.Question("task " + a + ", asked by " + b + ", again " + a + ", at " + at)
	}
	_, m := tape(t, []abi.ChatRequest{prompt(idA, idB, "2026-01-02T03:04:05Z")}, modeltest.Reply{
		Text:  []string{"I answer " + idB[:20], idB[20:] + "."},
		Calls: []modeltest.Call{{ID: "c", Name: "reply", Arguments: []string{`{"to":"` + idA + `"}`}}},
	})
	text, _, resp := modeltest.Collect(t, m, prompt(idC, idD, "2027-11-12T13:14:15.678901+02:00"))
	if text != "I answer "+idD+"." || resp.Text != text || resp.ToolCalls[0].Arguments != `{"to":"`+idC+`"}` {
		t.Errorf("got %q, %+v", text, resp)
	}
	_, _, err := ask(t, m, prompt(idC, idC, "2027-11-12T13:14:15Z"), true)
	failed(t, err, model.Unexpected, "<id 1>")
}

// TestCassetteAuto: with a key the provider is called, without one the file is played.
func TestCassetteAuto(t *testing.T) {
	w, _ := tape(t, []abi.ChatRequest{question}, modeltest.Reply{Text: []string{"taped"}}, modeltest.Reply{Text: []string{"live"}})
	w.spec.Mode = ""
	if resp, _, err := ask(t, w.open(t), question, false); err != nil || resp.Text != "live" {
		t.Errorf("with a key: %q, %v", resp.Text, err)
	}
	w.spec.APIKey, w.opt = "", model.Options{}
	taped := w.open(t)
	for range 3 {
		if resp, _, err := ask(t, taped, question, false); err != nil || resp.Text != "taped" {
			t.Errorf("without one: %q, %v", resp.Text, err)
		}
	}
	w.spec.Provider = model.Script
	if resp, _, err := ask(t, w.open(t), question, true); err != nil || resp.Text != "taped" {
		t.Errorf("as a script: %q, %v", resp.Text, err)
	}
}

func TestRecorderFails(t *testing.T) {
	w := newWorld(t, model.OpenAI, modeltest.InOrder(modeltest.Reply{Status: 400}, modeltest.Reply{}))
	w.spec.Cassette, w.spec.Mode = temp(t, "tape.jsonl"), model.Record
	m := w.open(t)
	_, _, err := ask(t, m, question, false)
	failed(t, err, model.Refused, "")
	if err := os.Remove(w.spec.Cassette); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.spec.Cassette, 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err = ask(t, m, question, false)
	failed(t, err, model.Auth, "cannot be recorded to tape.jsonl")
}

func TestCassetteFile(t *testing.T) {
	for text, file := range map[string]string{
		"tape.jsonl has no answers": "\n\n",
		"tape.jsonl:2: ":            "{}\n{\n",
	} {
		path := temp(t, "tape.jsonl")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := model.Open(model.Spec{Name: "default", Provider: model.Script, Cassette: path}, model.Options{})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}

// TestCassetteByHand: piece lengths that do not fit an edited text lose nothing of it.
func TestCassetteByHand(t *testing.T) {
	path := temp(t, "tape.jsonl")
	line := `{"request":{"model":"default","messages":[{"role":"user","content":"Hi"}]},"answer":{"text":"Hello","tool_calls":null,"finish":"stop","usage":{}},"pieces":[{"text":2},{"text":-4},{"reasoning":9},{"text":99}]}`
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(model.Spec{Name: "default", Provider: model.Script, Cassette: path}, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text, _, resp := modeltest.Collect(t, m, asked(abi.ChatMessage{Role: abi.RoleUser, Content: "Hi"})); text != "Hello" || resp.ToolCalls == nil {
		t.Errorf("got %q, %+v", text, resp)
	}
	bad := asked(abi.ChatMessage{Role: abi.RoleUser, Content: "Hi"})
	bad.Schema = []byte("{")
	_, _, err = ask(t, m, bad, false)
	failed(t, err, model.Refused, "the request is no JSON")
}

func TestOpenRefuses(t *testing.T) {
	good := newWorld(t, model.OpenAI, nil)
	for text, change := range map[string]func(*world){
		"the provider must be openai, anthropic or script, not \"bees\"": func(w *world) { w.spec.Provider = "bees" },
		"base_url must be as in":                     func(w *world) { w.spec.BaseURL = "ftp://x" },
		"without user and query":                     func(w *world) { w.spec.BaseURL = "https://u:p@x/v1" },
		"model must name":                            func(w *world) { w.spec.Model = "" },
		"no transport":                               func(w *world) { w.opt.Transport = nil },
		"api_key must be text without line breaks":   func(w *world) { w.spec.APIKey = key + "\n" },
		"the mode must be auto, replay or record":    func(w *world) { w.spec.Mode = "play" },
		"the mode replay takes a file: set cassette": func(w *world) { w.spec.Mode = model.Replay },
		"a script takes a file of rules":             func(w *world) { w.spec.Provider = model.Script },
		"nothing to record of a script":              func(w *world) { w.spec.Provider, w.spec.Mode, w.spec.Cassette = model.Script, model.Record, "x" },
		"open nowhere.toml: no such file":            func(w *world) { w.spec.Provider, w.spec.Cassette = model.Script, "nowhere.toml" },
		"open nowhere.jsonl: no such file":           func(w *world) { w.spec.Mode, w.spec.Cassette = model.Replay, "nowhere.jsonl" },
		"open nowhere/tape.jsonl: no such file":      func(w *world) { w.spec.Mode, w.spec.Cassette = model.Record, "nowhere/tape.jsonl" },
	} {
		w := *good
		change(&w)
		_, err := model.Open(w.spec, w.opt)
		if err == nil || !strings.HasPrefix(err.Error(), "models.default: ") || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), key) {
			t.Errorf("got %v, want %q", err, text)
		}
		if strings.Contains(text, "no such file") && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v does not say so", err)
		}
	}
}

// TestLargeRules: a file of rules is read whole, so its size is bounded.
func TestLargeRules(t *testing.T) {
	path := temp(t, "rules.toml")
	if err := os.WriteFile(path, []byte(strings.Repeat("# nothing\n", 5<<20/10)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := model.Open(model.Spec{Name: "m", Provider: model.Script, Cassette: path}, model.Options{}); err == nil || !strings.Contains(err.Error(), "more than 4194304 bytes") {
		t.Error(err)
	}
}
