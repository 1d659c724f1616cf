package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"skep/abi"
	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/egress"
	"skep/host/internal/model"
	"skep/host/internal/rest"
	"skep/host/internal/swarm"
)

// modelConnections is how many connections to one provider are left open.
const modelConnections = 64

// providers opens the models of a file and counts their calls, over reloads too.
type providers struct {
	client                          *egress.Client
	calls, failed, tokens, microUSD atomic.Int64
}

func newProviders(network func(*egress.Options)) *providers {
	return &providers{client: newClient(egress.Options{Keep: egress.Keep{Idle: modelConnections}}, network)}
}

// newClient returns a client of these options, and of a network where there is one.
func newClient(o egress.Options, network func(*egress.Options)) *egress.Client {
	if network != nil {
		network(&o)
	}
	return egress.New(o)
}

// ModelFaults lists what is wrong with the models of a file, without asking any
// provider.
func ModelFaults(cfg *config.Config) config.Faults {
	_, faults := newProviders(nil).open(cfg)
	return faults
}

// open makes the models of a file by their names.
func (p *providers) open(cfg *config.Config) (map[string]capability.Model, config.Faults) {
	models := make(map[string]capability.Model, len(cfg.Models))
	var faults config.Faults
	for _, m := range cfg.Models {
		opened, err := p.openOne(m)
		if err != nil {
			path := []string{"models", m.Name}
			var key *model.KeyError
			if errors.As(err, &key) {
				path = append(path, key.Key)
			}
			faults = append(faults, cfg.Fault(err.Error(), path...))
			continue
		}
		models[m.Name] = opened
	}
	return models, faults
}

func (p *providers) openOne(m config.Model) (capability.Model, error) {
	spec := model.Spec{
		Name: m.Name, Provider: m.Provider, BaseURL: m.BaseURL, Model: m.Model, APIKey: model.Key(m.APIKey.Reveal()), KeyVar: m.KeyVar,
		MaxTokens: m.MaxTokens, Timeout: m.Timeout, Retries: m.Retries, Cassette: m.Cassette, Mode: m.CassetteMode,
		Reasoning: m.Reasoning, Cache: m.Cache,
	}
	var errs [4]error
	spec.Prices.InputPerMTok, errs[0] = model.PerMTok(m.InputPrice)
	spec.Prices.CachedPerMTok, errs[1] = model.PerMTok(m.CachedPrice)
	spec.Prices.OutputPerMTok, errs[2] = model.PerMTok(m.OutputPrice)
	spec.Prices.CacheWritePerMTok, errs[3] = model.PerMTok(m.WritePrice)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	grant, err := egress.ParseGrant("https://*")
	if m.BaseURL != "" {
		grant, err = egress.ParseGrant(m.BaseURL)
	}
	if err == nil && grant.Private() && !m.AllowPrivate {
		err = fmt.Errorf("%q is a private address; it takes allow_private = true in [models.%s]", m.BaseURL, m.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("models.%s: %w", m.Name, &model.KeyError{Key: "base_url", Err: err})
	}
	policy := egress.Policy{
		Table: "[models." + m.Name + "]", Grants: []egress.Grant{grant}, AllowPrivate: m.AllowPrivate, PrivateNames: m.AllowPrivate,
	}
	opened, err := model.Open(spec, model.Options{Transport: p.client.Transport(policy)})
	if err != nil {
		return nil, err
	}
	return provided{p, spec, opened}, nil
}

// provided is a model as agents ask it.
type provided struct {
	p    *providers
	spec model.Spec
	m    model.Model
}

var _ capability.Model = provided{}

// Most implements [capability.Model].
func (m provided) Most(req abi.ChatRequest) swarm.Spend { return spend(m.spec.Estimate(req)) }

// Chat implements [capability.Model].
func (m provided) Chat(ctx context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, swarm.Spend, *abi.Error) {
	m.p.calls.Add(1)
	rsp, err := m.m.Chat(ctx, req, key, emit)
	cost := spend(rsp.Usage)
	var fault *abi.Error
	if err != nil {
		m.p.failed.Add(1)
		fault, cost = chatFault(err), swarm.Spend{}
		if costly(err) {
			cost = m.Most(req)
		}
	}
	m.p.tokens.Add(cost.Tokens)
	m.p.microUSD.Add(cost.MicroUSD)
	return rsp, cost, fault
}

func spend(u abi.ChatUsage) swarm.Spend {
	tokens := u.InputTokens + u.OutputTokens
	if tokens < u.InputTokens {
		tokens = math.MaxInt64
	}
	return swarm.Spend{Tokens: max(0, tokens), MicroUSD: max(0, u.MicroUSD)}
}

// costly reports whether the provider may want money for a call that failed, and
// has not said how much.
func costly(err error) bool {
	var broken *model.Error
	return !errors.As(err, &broken) || broken.Begun || broken.Kind == model.Malformed || broken.Kind == model.TooLarge
}

// chatFault is what an agent is told of a call that failed.
func chatFault(err error) *abi.Error {
	var own *abi.Error
	if errors.As(err, &own) {
		return own
	}
	var broken *model.Error
	if !errors.As(err, &broken) {
		return abi.Errorf(abi.CodeDeadline, abi.OpLLMChat, "timeout", "the call of the model was given up: %v", err)
	}
	code := map[model.Kind]abi.Code{
		model.RateLimited: abi.CodeUnavailable, model.Overloaded: abi.CodeUnavailable, model.Unavailable: abi.CodeUnavailable,
		model.Auth: abi.CodeUnavailable, model.TooLong: abi.CodeLimit, model.TooLarge: abi.CodeLimit,
	}[broken.Kind]
	if code == abi.CodeOK {
		code = abi.CodeUpstream // refused, malformed, unexpected
	}
	fault := abi.Errorf(code, abi.OpLLMChat, string(broken.Kind), "%v", broken)
	fault.RetryAfterMS = broken.RetryAfter.Milliseconds()
	return fault
}

func (p *providers) counters() []rest.Counter {
	return []rest.Counter{
		{Name: "skep_llm_calls_total", Help: "Calls of models that left agents.", Value: p.calls.Load()},
		{Name: "skep_llm_failures_total", Help: "Those of them that got no answer.", Value: p.failed.Load()},
		{Name: "skep_llm_tokens_total", Help: "Tokens of models, as far as known; else what was reserved.", Value: p.tokens.Load()},
		{Name: "skep_llm_micro_usd_total", Help: "What models have cost, in millionths of a dollar.", Value: p.microUSD.Load()},
	}
}
