package definition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/egress"
	"skep/host/internal/turn/model"
)

// modelConnections is how many idle connections to one provider stay open.
const modelConnections = 64

// ModelStats count the calls of models since the start.
type ModelStats struct{ Calls, Failures, Refused, Tokens, MicroUSD int64 }

// modelProviders opens the models of a file and counts their calls, across reloads.
type modelProviders struct {
	client                                   *egress.Client
	log                                      *slog.Logger // nil for none
	calls, failed, refused, tokens, microUSD atomic.Int64

	mu      sync.Mutex
	byModel map[string]*modelUse
}

func newModelProviders(network func(*egress.Options), log *slog.Logger) *modelProviders {
	return &modelProviders{log: log, client: newClient(egress.Options{KeepAlive: egress.KeepAlive{MaxIdlePerHost: modelConnections}}, network)}
}

// newClient returns a client with the options; network, if it is set, changes them.
func newClient(o egress.Options, network func(*egress.Options)) *egress.Client {
	if network != nil {
		network(&o)
	}
	return egress.New(o)
}

// modelFaults lists what is wrong with the models of a file. It calls no provider.
func modelFaults(cfg *config.Config) config.Faults {
	_, faults := newModelProviders(nil, nil).open(cfg)
	return faults
}

// open makes the models of a file, by name.
func (p *modelProviders) open(cfg *config.Config) (map[string]capability.Model, config.Faults) {
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

func (p *modelProviders) openOne(m config.Model) (capability.Model, error) {
	spec := model.Spec{
		Name: m.Name, Provider: m.Provider, BaseURL: m.BaseURL, Model: m.Model, APIKey: model.Key(m.APIKey.Reveal()), KeyVar: m.KeyVar,
		MaxTokens: m.MaxTokens, Timeout: m.Timeout, Retries: m.Retries, RestAfter: m.RestAfter, Rest: m.Rest, Cassette: m.Cassette, Mode: m.CassetteMode,
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
	opened, err := model.Open(spec, model.Options{Transport: p.client.Transport(policy), Logger: p.log})
	if err != nil {
		return nil, err
	}
	return meteredModel{p, spec, opened}, nil
}

// meteredModel is a model whose calls are counted.
type meteredModel struct {
	p    *modelProviders
	spec model.Spec
	m    model.Model
}

var _ capability.Model = meteredModel{}

// Provider is the name of the provider in the file.
func (m meteredModel) Provider() string { return m.spec.Provider }

// Name implements [capability.Model].
func (m meteredModel) Name() string { return cmp.Or(m.spec.Model, m.spec.Name) }

// MaxCost implements [capability.Model].
func (m meteredModel) MaxCost(req abi.ChatRequest) swarm.Spend { return spend(m.spec.Estimate(req)) }

// Chat implements [capability.Model].
func (m meteredModel) Chat(ctx context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, swarm.Spend, *capability.ModelFault) {
	m.p.calls.Add(1)
	rsp, err := m.m.Chat(ctx, req, key, emit)
	cost := spend(rsp.Usage)
	var fault *capability.ModelFault
	if err != nil {
		m.p.failed.Add(1)
		fault, cost = &capability.ModelFault{Fault: chatFault(err), Cause: causeOf(err)}, swarm.Spend{}
		if fault.Fault.Reason == string(model.Resting) {
			m.p.refused.Add(1)
		}
		if mayCost(err) {
			cost = m.MaxCost(req)
		}
	}
	m.p.tokens.Add(cost.Tokens)
	m.p.microUSD.Add(cost.MicroUSD)
	m.p.count(m.spec.Name, err, rsp.Usage, cost)
	return rsp, cost, fault
}

func spend(u abi.ChatUsage) swarm.Spend {
	tokens := u.InputTokens + u.OutputTokens
	if tokens < u.InputTokens {
		tokens = math.MaxInt64
	}
	return swarm.Spend{Tokens: max(0, tokens), Output: max(0, u.OutputTokens), MicroUSD: max(0, u.MicroUSD)}
}

// mayCost reports whether the provider may charge an unknown amount for a failed call.
func mayCost(err error) bool {
	var broken *model.Error
	return !errors.As(err, &broken) || broken.Billable || broken.Kind == model.Malformed || broken.Kind == model.TooLarge
}

// causeOf returns why a call has failed, for operators; empty for one that was given up here.
func causeOf(err error) string {
	var broken *model.Error
	if errors.As(err, &broken) {
		return broken.Cause()
	}
	return ""
}

// chatFault is the error that an agent gets for a failed call.
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
		model.RateLimited: abi.CodeUnavailable, model.Overloaded: abi.CodeUnavailable, model.Unavailable: abi.CodeUnavailable, model.Resting: abi.CodeUnavailable,
		model.Auth: abi.CodeUnavailable, model.TooLong: abi.CodeLimit, model.TooLarge: abi.CodeLimit,
	}[broken.Kind]
	if code == abi.CodeOK {
		code = abi.CodeUpstream // refused, malformed, unexpected
	}
	fault := abi.Errorf(code, abi.OpLLMChat, string(broken.Kind), "%v", broken)
	fault.RetryAfterMS = broken.RetryAfter.Milliseconds()
	return fault
}

func (p *modelProviders) stats() ModelStats {
	return ModelStats{Calls: p.calls.Load(), Failures: p.failed.Load(), Refused: p.refused.Load(), Tokens: p.tokens.Load(), MicroUSD: p.microUSD.Load()}
}
