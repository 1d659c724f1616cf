package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"skep/abi"
	"skep/host/internal/egress"
)

// provider speaks one wire format.
type provider interface {
	// ask makes one try and fills in the answer. One without a finish is taken
	// as broken off.
	ask(ctx context.Context, client *http.Client, req abi.ChatRequest, key string, into *answer) error
}

// remote is a model of a provider.
type remote struct {
	s     Spec
	o     Options
	scrub egress.Scrubber
	p     provider
}

func openProvider(s Spec, o Options) (*remote, error) {
	r := &remote{s: s, o: o}
	switch s.Provider {
	case OpenAI:
		r.s.BaseURL = cmp.Or(s.BaseURL, "https://api.openai.com/v1")
		r.p = newOpenAI(r.s)
	case Anthropic:
		r.s.BaseURL = cmp.Or(s.BaseURL, "https://api.anthropic.com")
		r.p = newAnthropic(r.s)
	default:
		return nil, fmt.Errorf("the provider must be %s, %s or %s, not %q", OpenAI, Anthropic, Script, s.Provider)
	}
	if u, err := url.Parse(r.s.BaseURL); err != nil || u.Host == "" || u.RawQuery != "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("base_url must be as in %q, without user and query", "https://api.example.com/v1")
	}
	switch {
	case s.Model == "":
		return nil, errors.New("model must name a model of the provider")
	case o.Transport == nil:
		return nil, errors.New("there is no transport to ask the provider with")
	}
	if r.o.Wait == nil {
		r.o.Wait = sleep
	}
	if r.o.Jitter == nil {
		r.o.Jitter = rand.Float64
	}
	var err error
	r.scrub, err = scrubberOf(r.s)
	return r, err
}

// scrubberOf knows the key by the forms in which servers repeat it.
func scrubberOf(s Spec) (egress.Scrubber, error) {
	if s.APIKey == "" {
		return egress.NewScrubber(), nil
	}
	secret, err := egress.NewSecret("api_key", string(s.APIKey), "Authorization", s.BaseURL)
	if err != nil {
		return egress.Scrubber{}, errors.New("api_key must be text without line breaks, control characters and space around it")
	}
	return egress.NewScrubber(secret), nil
}

// Chat asks, again while that may help and nothing was handed on.
func (r *remote) Chat(ctx context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, error) {
	if err := check(req); err != nil {
		return abi.ChatResponse{}, r.named(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.s.Timeout, errTimeout)
	defer cancel()
	begun := false
	for tried := 0; ; tried++ {
		a := &answer{emit: emit, scrub: r.scrub}
		resp, err := r.try(ctx, req, key, a)
		var broken *Error
		if err == nil || !errors.As(err, &broken) {
			return resp, err
		}
		begun = begun || a.begun
		pause, ok := r.pause(ctx, broken, tried)
		if !ok || a.handed {
			broken = r.named(broken)
			broken.Begun = begun
			return abi.ChatResponse{}, broken
		}
		if err := r.o.Wait(ctx, pause); err != nil {
			return abi.ChatResponse{}, err
		}
	}
}

// try asks once. What went wrong is an *Error, or why the caller is done.
func (r *remote) try(ctx context.Context, req abi.ChatRequest, key string, a *answer) (abi.ChatResponse, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &wire{next: r.o.Transport, idle: r.s.Idle, cancel: cancel, scrub: r.scrub, key: r.s.APIKey != "", into: a}
	client := &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	err := r.p.ask(ctx, client, req, key, a)
	switch {
	case err != nil:
		a.begun = a.begun || w.timedOut(ctx)
	case a.finish == "" && w.streams && !a.begun:
		err = fault(Unavailable, "the answer broke off, and none of it was of the provider %s; is base_url %q a server of that kind?", r.s.Provider, r.s.BaseURL)
	case a.finish == "" && w.streams:
		err = fault(Unavailable, "the answer broke off")
	case a.finish == "":
		err = fault(Malformed, "the answer is no stream of events; base_url may lead elsewhere than to the provider %s", r.s.Provider)
	}
	var resp abi.ChatResponse
	if err == nil {
		resp, err = a.whole(r.s, req)
	}
	if err != nil {
		return abi.ChatResponse{}, r.because(ctx, a, err)
	}
	return resp, nil
}

func (r *remote) named(err *Error) *Error {
	out := *err
	out.Name = r.s.Name
	out.Message = r.scrub.Text(out.Message)
	return &out
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
