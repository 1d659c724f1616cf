package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

// provider speaks one wire format.
type provider interface {
	// attempt sends the request once and fills in the answer. An answer without a finish
	// reason counts as broken off.
	attempt(ctx context.Context, client *http.Client, req abi.ChatRequest, key string, into *answer) error
}

// remoteModel is a model served by a provider.
type remoteModel struct {
	spec     Spec
	opt      Options
	scrub    *egress.Scrubber
	provider provider
	breaker  breaker
}

func openProvider(s Spec, o Options) (*remoteModel, error) {
	r := &remoteModel{spec: s, opt: o, breaker: breaker{after: s.RestAfter, rest: s.Rest}}
	switch s.Provider {
	case OpenAI:
		r.spec.BaseURL = cmp.Or(s.BaseURL, "https://api.openai.com/v1")
		r.provider = newOpenAI(r.spec)
	case Anthropic:
		r.spec.BaseURL = cmp.Or(s.BaseURL, "https://api.anthropic.com")
		r.provider = newAnthropic(r.spec)
	default:
		return nil, fmt.Errorf("the provider must be %s, %s or %s, not %q", OpenAI, Anthropic, Script, s.Provider)
	}
	if u, err := url.Parse(r.spec.BaseURL); err != nil || u.Host == "" || u.RawQuery != "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("base_url must be as in %q, without user and query", "https://api.example.com/v1")
	}
	switch {
	case s.Model == "":
		return nil, errors.New("model must name a model of the provider")
	case o.Transport == nil:
		return nil, errors.New("there is no transport to ask the provider with")
	}
	if r.opt.Wait == nil {
		r.opt.Wait = sleep
	}
	if r.opt.Now == nil {
		r.opt.Now = time.Now
	}
	if r.opt.Logger == nil {
		r.opt.Logger = slog.New(slog.DiscardHandler)
	}
	if r.opt.Jitter == nil {
		r.opt.Jitter = rand.Float64
	}
	var err error
	r.scrub, err = keyScrubber(r.spec)
	return r, err
}

// keyScrubber returns a scrubber that removes the key.
func keyScrubber(s Spec) (*egress.Scrubber, error) {
	if s.APIKey == "" {
		return egress.NewScrubber(), nil
	}
	secret, err := egress.NewSecret("api_key", string(s.APIKey), "Authorization", s.BaseURL)
	if err != nil {
		return nil, errors.New("api_key must be text without line breaks, control characters and space around it")
	}
	return egress.NewScrubber(secret), nil
}

// Chat sends the request, and retries while that may help and no piece was emitted. A
// model that rests is not asked.
func (r *remoteModel) Chat(ctx context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, error) {
	if err := checkRequest(req); err != nil {
		return abi.ChatResponse{}, r.withModelName(err)
	}
	if err := r.breaker.admit(r.opt.Now()); err != nil {
		return abi.ChatResponse{}, r.withModelName(err)
	}
	resp, err := r.chat(ctx, req, key, emit)
	r.recordRest(err)
	return resp, err
}

// recordRest counts how a call has ended, and logs the begin and the end of a rest. What
// ended the call on this side says nothing about the provider.
func (r *remoteModel) recordRest(err error) {
	var failed *Error
	if err != nil && !errors.As(err, &failed) {
		return
	}
	switch began, ended := r.breaker.record(failed, r.opt.Now()); {
	case began:
		r.opt.Logger.Warn("a model rests: call after call failed", "model", r.spec.Name, "for", r.spec.Rest, "why", r.withModelName(failed).Cause())
	case ended:
		r.opt.Logger.Info("a model rests no more", "model", r.spec.Name)
	}
}

// chat makes the attempts of a call.
func (r *remoteModel) chat(ctx context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.spec.Timeout, errTimeout)
	defer cancel()
	begun := false
	for tried := 0; ; tried++ {
		a := &answer{emit: emit, scrub: r.scrub}
		resp, err := r.attempt(ctx, req, key, a)
		var broken *Error
		if err == nil || !errors.As(err, &broken) {
			return resp, err
		}
		begun = begun || a.billable
		pause, ok := r.retryDelay(ctx, broken, tried)
		if !ok || a.emitted || r.breaker.resting(r.opt.Now()) {
			broken = r.withModelName(broken)
			broken.Billable = begun
			return abi.ChatResponse{}, broken
		}
		if err := r.opt.Wait(ctx, pause); err != nil {
			return abi.ChatResponse{}, err
		}
	}
}

// attempt sends the request once. It returns an *Error, or the reason why the caller's
// context is done.
func (r *remoteModel) attempt(ctx context.Context, req abi.ChatRequest, key string, a *answer) (abi.ChatResponse, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &attemptTransport{next: r.opt.Transport, idleTimeout: r.spec.IdleTimeout, cancel: cancel, scrub: r.scrub, hasKey: r.spec.APIKey != "", into: a}
	client := &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	err := r.provider.attempt(ctx, client, req, key, a)
	switch {
	case err != nil:
		a.billable = a.billable || w.timedOut(ctx)
	case a.finish == "" && w.streams && !a.billable:
		err = newError(Unavailable, "the answer broke off, and none of it was of the provider %s; is base_url %q a server of that kind?", r.spec.Provider, r.spec.BaseURL).inShort("answer broken off")
	case a.finish == "" && w.streams:
		err = newError(Unavailable, "the answer broke off").inShort("answer broken off")
	case a.finish == "":
		err = newError(Malformed, "the answer is no stream of events; base_url may lead elsewhere than to the provider %s", r.spec.Provider)
	}
	var resp abi.ChatResponse
	if err == nil {
		resp, err = a.response(r.spec, req)
	}
	if err != nil {
		return abi.ChatResponse{}, r.attemptError(ctx, a, err)
	}
	return resp, nil
}

func (r *remoteModel) withModelName(err *Error) *Error {
	out := *err
	out.Name = r.spec.Name
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
