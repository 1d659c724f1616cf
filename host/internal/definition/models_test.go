package definition

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

// Faults of models are told before the host starts, with the table.
func TestModelFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "script.wasm"), guests.Bytes(t, "plugins/script"), 0o600); err != nil {
		t.Fatal(err)
	}
	const file = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
`
	for table, want := range map[string][2]string{
		"provider = \"script\"\ncassette = \"none.json\"":                                          {".cassette", "none.json"},
		"provider = \"openai\"\nmodel = \"m\"\ncassette = \"none.jsonl\"":                          {".cassette", "none.jsonl"},
		"provider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://8.8.8.8/v1\"\napi_key = \" x\"": {"", "api_key"},
		"provider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://10.0.0.1/v1\"": {
			".base_url", `base_url: "http://10.0.0.1/v1" is a private address; it takes allow_private = true in [models.m]`},
	} {
		cfg, err := config.Parse("swarm.toml", []byte(file+"[models.m]\n"+table+"\n"), dir, config.Options{})
		if cfg == nil {
			t.Fatal(err)
		}
		faults := modelFaults(cfg)
		if len(faults) != 1 || faults[0].Path != "models.m"+want[0] || !strings.Contains(faults[0].Message, want[1]) {
			t.Errorf("%s: %v, want %s", table, faults, want)
		}
	}
}

// What becomes of a failed call is one of the ABI's codes, with its reason.
func TestChatFaults(t *testing.T) {
	t.Parallel()
	for kind, want := range map[model.Kind]abi.Code{
		model.RateLimited: abi.CodeUnavailable, model.Overloaded: abi.CodeUnavailable, model.Unavailable: abi.CodeUnavailable,
		model.Auth: abi.CodeUnavailable, model.Refused: abi.CodeUpstream, model.Malformed: abi.CodeUpstream,
		model.Unexpected: abi.CodeUpstream, model.TooLong: abi.CodeLimit, model.TooLarge: abi.CodeLimit,
	} {
		fault := chatFault(&model.Error{Kind: kind, Name: "m", Message: "no", RetryAfter: 2 * time.Second})
		if fault.Code != want || fault.Reason != string(kind) || fault.RetryAfterMS != 2000 || fault.Message != "models.m: no" {
			t.Errorf("%s: %+v", kind, fault)
		}
	}
	own := abi.Errorf(abi.CodeCancelled, abi.OpLLMChat, "cancelled", "over")
	if fault := chatFault(fmt.Errorf("x: %w", own)); fault != own {
		t.Errorf("its own: %+v", fault)
	}
	if fault := chatFault(errors.New("late")); fault.Code != abi.CodeDeadline {
		t.Errorf("%+v", fault)
	}
}

// What a call has cost that got no answer: nothing where the provider refused it or was
// not there, all that was reserved where it had begun to answer or the call's time ran
// out with it.
func TestChatCost(t *testing.T) {
	t.Parallel()
	busy := modeltest.Failure{Type: "overloaded_error", Message: "busy"}
	for name, c := range map[string]struct {
		reply    modeltest.Reply
		streamed bool
		counts   bool
	}{
		"refused for a rate":           {modeltest.Reply{Status: 429}, true, false},
		"overloaded":                   {modeltest.Reply{Status: 503}, false, false},
		"broken off at once":           {modeltest.Reply{Body: ": soon\n\n", Type: "text/event-stream"}, true, false},
		"broken off before a piece":    {modeltest.Reply{Text: []string{"Yes."}, Events: 1}, true, true},
		"broken off after a piece":     {modeltest.Reply{Text: []string{"Yes.", "No."}, Events: 2}, true, true},
		"an error after a piece":       {modeltest.Reply{Text: []string{"Yes."}, Fail: &busy}, true, true},
		"a whole answer that is wrong": {modeltest.Reply{Body: `{"choices":[`, Type: "application/json"}, false, true},
		"silent until the end":         {modeltest.Reply{Stall: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(modeltest.OpenAI(modeltest.InOrder(c.reply)))
			t.Cleanup(s.Close)
			p := newModelProviders(nil, nil)
			m, err := p.openOne(config.Model{Name: "m", Provider: "openai", Model: "m", BaseURL: s.URL + "/v1", Timeout: 300 * time.Millisecond, AllowPrivate: true, InputPrice: 1})
			if err != nil {
				t.Fatal(err)
			}
			req := modeltest.Question("Tea?")
			var emit func(abi.ChatPiece) error
			if c.streamed {
				emit = func(abi.ChatPiece) error { return nil }
			}
			_, cost, fault := m.Chat(t.Context(), req, "k", emit)
			want := swarm.Spend{}
			if c.counts {
				want = m.MaxCost(req)
			}
			if fault == nil || cost != want || c.counts != (p.tokens.Load() > 0) {
				t.Errorf("it has cost %+v, want %+v: %v", cost, want, fault)
			}
		})
	}
}
