package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skep/abi"
	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-planted-0123456789abcdef"

// world is a fake provider and a model that uses it.
type world struct {
	*modeltest.Server
	spec model.Spec
	opt  model.Options
	// waited are the pauses between attempts.
	waited []time.Duration
}

func newWorld(t *testing.T, provider string, answer modeltest.Answer) *world {
	t.Helper()
	w := &world{spec: model.Spec{
		Name: "default", Provider: provider, Model: "model-1", APIKey: key, Timeout: time.Minute,
		Prices: model.Prices{InputPerMTok: 1e6, CachedPerMTok: 5e5, OutputPerMTok: 2e6},
	}}
	path := ""
	switch provider {
	case model.OpenAI:
		w.Server, path = modeltest.OpenAI(answer), "/v1"
	case model.Anthropic:
		w.Server = modeltest.Anthropic(answer)
	}
	s := httptest.NewServer(w.Server)
	t.Cleanup(s.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	w.spec.BaseURL = s.URL + path
	w.opt = model.Options{Transport: transport, Jitter: func() float64 { return 0 }, Wait: func(_ context.Context, d time.Duration) error {
		w.waited = append(w.waited, d)
		return nil
	}}
	return w
}

func (w *world) open(t *testing.T) model.Model {
	t.Helper()
	m, err := model.Open(w.spec, w.opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ask makes a call, streamed or not, and returns the number of pieces.
func ask(t *testing.T, m model.Model, req abi.ChatRequest, streamed bool) (abi.ChatResponse, int, error) {
	t.Helper()
	n := 0
	var emit func(abi.ChatPiece) error
	if streamed {
		emit = func(abi.ChatPiece) error { n++; return nil }
	}
	resp, err := m.Chat(t.Context(), req, "key-1", emit)
	return resp, n, err
}

// failed checks an error's kind and text, and that it does not contain the key.
func failed(t *testing.T, err error, kind model.Kind, text string) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want %s", err, kind)
	}
	if e.Kind != kind || e.Name != "default" || !strings.Contains(err.Error(), text) {
		t.Errorf("got %s: %v\nwant %s with %q", e.Kind, err, kind, text)
	}
	if strings.Contains(err.Error(), key) {
		t.Errorf("the key is in %v", err)
	}
	return e
}

// each runs a test for both providers, streamed and not.
func each(t *testing.T, run func(t *testing.T, provider string, streamed bool)) {
	for _, provider := range []string{model.OpenAI, model.Anthropic} {
		t.Run(provider, func(t *testing.T) { run(t, provider, true) })
		t.Run(provider+", whole", func(t *testing.T) { run(t, provider, false) })
	}
}

// body is the n-th request as the provider received it.
func (w *world) body(t *testing.T, n int) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(w.Requests()[n].Body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func temp(t *testing.T, name string) string { return filepath.Join(t.TempDir(), name) }

var question = modeltest.Question("What now?")
