package model

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"skep/abi"
)

// Model answers conversations. It is safe for concurrent use.
type Model interface {
	// Chat asks, and blocks until the answer is whole. emit, where not nil, gets
	// the pieces as they come, in order and on the caller's goroutine, but never
	// the End piece; its error ends the call and is returned. The response is
	// whole either way, with its price. key is the same for each try of one
	// call; providers that know such keys answer it once.
	//
	// Errors are an [*Error], emit's, or why ctx is done.
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
	// Auto replays when the spec has no key, and asks the provider when it has
	// one, so that one file serves with and without.
	Auto   = "auto"
	Replay = "replay"
	// Record asks the provider and appends to the file.
	Record = "record"
)

// Spec is one model of the operator's file.
type Spec struct {
	// Name is the NAME of [models.NAME]; errors say it.
	Name     string
	Provider string
	// BaseURL is the address before "/chat/completions" or "/v1/messages". Empty
	// takes the provider's own.
	BaseURL string
	// Model is the provider's name of the model.
	Model  string
	APIKey Key
	// KeyVar is the environment variable that would give a key, where there is
	// none; errors of a cassette name it.
	KeyVar string
	// MaxTokens bounds an answer, in tokens. Default 4096.
	MaxTokens int64
	// Timeout is the time of a whole call with its retries. Default 2 min.
	Timeout time.Duration
	// Idle is the longest silence within an answer. Default 60 s.
	Idle time.Duration
	// Retries is how often a call is tried again; zero is never.
	Retries int
	Prices  Prices
	// Reasoning is how much a model is to think: "low", "medium" or "high";
	// empty leaves it to the provider.
	Reasoning string
	// Cache has Anthropic keep prompts, so that the next call that begins alike
	// costs less. Others do so unasked.
	Cache bool
	// Cassette is the file of recorded answers or, of a script, its rules.
	Cassette string
	// Mode is what is done with the cassette; empty is [Auto].
	Mode string
	// Headers are sent with each request.
	Headers map[string]string
}

// Options are what a model needs of its host; zeros take the defaults.
type Options struct {
	// Transport carries the requests; it decides which addresses may be
	// reached. The provider's secrets are in them. Required unless answers are
	// scripted or replayed.
	Transport http.RoundTripper
	// Wait pauses before a retry, until ctx ends. Default: it sleeps.
	Wait func(ctx context.Context, d time.Duration) error
	// Jitter is a random number in [0, 1). Default: of math/rand.
	Jitter func() float64
}

// Open makes the model of a spec. It reads the files of scripts and cassettes
// and asks nobody; nothing has to be closed. Errors name the key to change.
func Open(s Spec, o Options) (Model, error) {
	s.MaxTokens = cmp.Or(s.MaxTokens, defaultTokens)
	s.Timeout = cmp.Or(s.Timeout, 2*time.Minute)
	s.Idle = cmp.Or(s.Idle, time.Minute)
	s.Mode = cmp.Or(s.Mode, Auto)
	m, err := open(s, o)
	if err != nil {
		return nil, fmt.Errorf("models.%s: %w", s.Name, err)
	}
	return &priced{m: m, spec: s}, nil
}

func open(s Spec, o Options) (Model, error) {
	switch {
	case s.Mode != Auto && s.Mode != Replay && s.Mode != Record:
		return nil, fmt.Errorf("the mode must be %s, %s or %s, not %q", Auto, Replay, Record, s.Mode)
	case s.Mode != Auto && s.Cassette == "":
		return nil, fmt.Errorf("the mode %s takes a file: set cassette", s.Mode)
	case s.Provider == Script:
		return openScript(s)
	case s.Cassette != "" && (s.Mode == Replay || s.Mode == Auto && s.APIKey == ""):
		return openReplay(s)
	}
	m, err := openProvider(s, o)
	if err != nil || s.Mode != Record {
		return m, err
	}
	return openRecorder(s, m)
}

// priced adds what an answer costs.
type priced struct {
	m    Model
	spec Spec
}

func (p *priced) Chat(ctx context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, error) {
	resp, err := p.m.Chat(ctx, req, key, emit)
	if err != nil {
		return abi.ChatResponse{}, err
	}
	resp.Usage = p.spec.counted(resp.Usage, req)
	if resp.ToolCalls == nil {
		resp.ToolCalls = []abi.ChatCall{}
	}
	return resp, nil
}

const defaultTokens = 4096
