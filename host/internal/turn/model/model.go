package model

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"skep/abi"
)

// Model answers conversations. It is safe for concurrent use.
type Model interface {
	// Chat sends a request and blocks until the answer is complete. emit, if not nil, gets
	// the pieces in order and on the caller's goroutine, but never the End piece; an error
	// of emit ends the call and is returned. The response is complete either way and
	// contains its price. key is the same for each attempt of one call; providers that
	// support such keys answer it once.
	//
	// Errors are an [*Error], the error of emit, or the cause of ctx.
	Chat(ctx context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, error)
}

// Providers of a [Spec].
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
	Script    = "script"
)

// Modes of a cassette.
const (
	// Auto replays if the spec has no key and calls the provider if it has one, so that
	// one file serves both cases.
	Auto   = "auto"
	Replay = "replay"
	// Record calls the provider and appends to the file.
	Record = "record"
)

// Spec is one model of the operator's file.
type Spec struct {
	// Name is the NAME of [models.NAME]; errors contain it.
	Name     string
	Provider string
	// BaseURL is the address before "/chat/completions" or "/v1/messages". Empty selects
	// the provider's own.
	BaseURL string
	// Model is the provider's name of the model.
	Model  string
	APIKey Key
	// KeyVar is the environment variable that would provide a missing key; errors of a
	// cassette name it.
	KeyVar string
	// MaxTokens bounds an answer, in tokens. Default 4096.
	MaxTokens int64
	// Timeout bounds a whole call with its retries. Default 2 min.
	Timeout time.Duration
	// IdleTimeout bounds the pause between two reads of an answer. Default 60 s.
	IdleTimeout time.Duration
	// Retries is the number of further attempts; zero makes one attempt only.
	Retries int
	// RestAfter is the number of failed calls in a row after which the model rests for
	// Rest: calls are refused at once. Zero never rests.
	RestAfter int
	Rest      time.Duration
	Prices    Prices
	// Reasoning is the effort of reasoning: "low", "medium" or "high"; empty leaves it to
	// the provider.
	Reasoning string
	// Cache makes Anthropic cache prompts, so that the next call with the same prefix
	// costs less. Other providers cache by themselves.
	Cache bool
	// Cassette is the file of recorded answers or, for a script, of its rules.
	Cassette string
	// Mode is the mode of the cassette; empty is [Auto].
	Mode string
	// Headers are sent with each request.
	Headers map[string]string
}

// Options are what a model needs from the host. Zero values take the defaults.
type Options struct {
	// Transport carries the requests and decides which addresses are reachable. The
	// requests contain the provider's key. Required unless answers are scripted or
	// replayed.
	Transport http.RoundTripper
	// Wait pauses before a retry, until ctx ends. Default: a timer.
	Wait func(ctx context.Context, d time.Duration) error
	// Now is the clock of rests. Default: time.Now.
	Now func() time.Time
	// Logger gets the begin and the end of a rest. Default: none.
	Logger *slog.Logger
	// Jitter returns a random number in [0, 1). Default: math/rand.
	Jitter func() float64
}

// Open returns the model of a spec. It reads the files of scripts and cassettes and makes
// no request; the model needs no Close. Errors name the key to change.
func Open(s Spec, o Options) (Model, error) {
	s.MaxTokens = cmp.Or(s.MaxTokens, defaultTokens)
	s.Timeout = cmp.Or(s.Timeout, 2*time.Minute)
	s.IdleTimeout = cmp.Or(s.IdleTimeout, time.Minute)
	s.Mode = cmp.Or(s.Mode, Auto)
	m, err := openModel(s, o)
	if err != nil {
		return nil, fmt.Errorf("models.%s: %w", s.Name, err)
	}
	return &pricedModel{m: m, spec: s}, nil
}

func openModel(s Spec, o Options) (Model, error) {
	switch {
	case s.Mode != Auto && s.Mode != Replay && s.Mode != Record:
		return nil, fmt.Errorf("the mode must be %s, %s or %s, not %q", Auto, Replay, Record, s.Mode)
	case s.Mode != Auto && s.Cassette == "":
		return nil, fmt.Errorf("the mode %s takes a file: set cassette", s.Mode)
	case s.Provider == Script:
		return openScript(s)
	case s.Cassette != "" && (s.Mode == Replay || s.Mode == Auto && s.APIKey == ""):
		return openCassette(s)
	}
	m, err := openProvider(s, o)
	if err != nil || s.Mode != Record {
		return m, err
	}
	return openRecorder(s, m)
}

// pricedModel adds the price to an answer.
type pricedModel struct {
	m    Model
	spec Spec
}

func (p *pricedModel) Chat(ctx context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, error) {
	resp, err := p.m.Chat(ctx, req, key, emit)
	if err != nil {
		return abi.ChatResponse{}, err
	}
	resp.Usage = p.spec.settle(resp.Usage, req)
	if resp.ToolCalls == nil {
		resp.ToolCalls = []abi.ChatCall{}
	}
	return resp, nil
}

const defaultTokens = 4096
